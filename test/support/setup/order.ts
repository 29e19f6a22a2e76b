/** Begins with the slowest files, so that none of them runs alone at the end while the other workers are idle. */

import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * The slowest files, in the order in which they begin: those of the slow part, and then the others. Files that mostly wait
 * alternate with files that mostly compute, since three that wait would leave the processor idle.
 */
const slowest = [
  'large/frontends/frontends',
  'browser/console',
  'browser/prefix',
  'ops/cluster',
  'docs/examples',
  'extensions/standbys/replicas',
  'database/embedded/embedded',
  'coherence/coherence',
  'browser/explorer',
  'extensions/upstream/mirror/faults',
  'browser/consoleAccounts',
  'extensions/upstream/mirror/service',
  'fuzz/requests',
  'browser/consoleLive',
  'extensions/upstream/mirror/accounts',
  'cli/user',
  'extensions/upstream/mirror/details',
  'cli/token',
  'extensions/upstream/mirror/bothEngines',
  'server/serve',
  'telemetry/log',
  'mcp/tools',
  'database/feed/notify',
  'schema/breaking',
  'extensions/upstream/mirror/lease',
  'graphql/execution',
  'extensions/upstream/mirror/activation',
  'database/embedded/engineStart',
  'extensions/upstream/proxy/oracle',
  'schema/activation',
  'database/announcements',
  'http/hostile',
  'mcp/access',
  'database/pooler',
  'extensions/upstream/mirror/runs',
  'graphql/queries',
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
