/** Begins with the slowest files, so that none of them runs alone at the end while the other workers are idle. */

import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** The files that take longest, in this order: those of the slow part, and then the others. */
const slowest = [
  'large/frontends/frontends',
  'docs/examples',
  'browser/console',
  'browser/prefix',
  'browser/pages',
  'extensions/standbys/replicas',
  'database/embedded/embedded',
  'coherence/coherence',
  'server/serve',
  'extensions/dump/dump',
  'browser/followed',
  'browser/consoleSettings',
  'extensions/upstream/mirror/service',
  'releases/releases',
  'server/gateway',
  'extensions/upstream/mirror/faults',
  'browser/explorer',
  'browser/consoleAccounts',
  'extensions/upstream/mirror/randomRuns',
  'fuzz/requests',
  'cli/token',
  'database/reader/statement',
  'release',
  'ops/cluster',
  'server/availability',
  'extensions/followed/followed',
  'http/hostile',
  'graphql/apiTokens',
  'database/feed/notify',
  'telemetry/log',
  'graphql/expiry',
  'extensions/upstream/proxy/proxy',
  'extensions/tracing/traces',
  'rest/errors',
  'extensions/upstream/proxy/oracle',
  'database/database',
];

/** The position of a file in this list, or the end of the list. */
function rankOf({ moduleId }: TestSpecification): number {
  const rank = slowest.findIndex((name) => moduleId.includes(`/test/${name}.`));
  return rank === -1 ? slowest.length : rank;
}

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    // A worker that changes to another project imports everything again.
    const projects = [...new Set(sorted.map(({ project }) => project))];
    return projects.flatMap((project) => {
      const own = sorted.filter((file) => file.project === project);
      return own.sort((one, other) => rankOf(one) - rankOf(other));
    });
  }
}
