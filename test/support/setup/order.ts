/** Begins with the slowest files, so that none of them runs alone at the end while the other workers are idle. */

import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * The slowest files, in the order in which they begin. Files that mostly wait alternate with files that mostly compute, since three
 * that wait would leave the processor idle.
 */
const slowest = [
  'docs/examples',
  'browser/console',
  'database/embedded/embedded',
  'mirror/accounts',
  'mirror/faults',
  'fuzz/requests',
  'database/reader/statement',
  'mirror/service',
  'coherence/coherence',
  'mirror/mirror',
  'cli/sync',
  'mirror/details',
  'mirror/refresh',
  'schema/parity',
  'cli/node',
  'graphql/limits',
  'database/feed/notify',
  'schema/activation',
  'graphql/connections',
  'graphql/subscriptions',
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
