/** What takes longest begins first, so that no worker is left with it at the end while the others have nothing to do. */

import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * The files that take longest, in the order in which they begin: those that mostly wait stand beside those that mostly compute,
 * since three that wait leave the processor without work.
 */
const long = [
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

/** The place of a file among them, or behind all of them. */
function placeOf({ moduleId }: TestSpecification): number {
  const place = long.findIndex((name) => moduleId.includes(`/test/${name}.`));
  return place === -1 ? long.length : place;
}

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    // A worker that changes the project loads everything again.
    const projects = [...new Set(sorted.map(({ project }) => project))];
    return projects.flatMap((project) => {
      const own = sorted.filter((file) => file.project === project);
      return own.sort((one, other) => placeOf(one) - placeOf(other));
    });
  }
}
