/** What takes longest begins first, so that no worker is left with it at the end while the others have nothing to do. */

import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** The files that take longest for their size, by which those are ordered of which no run is remembered, as in a fresh clone. */
const long = [
  'docs/examples',
  'browser/console',
  'mirror/accounts',
  'fuzz/requests',
  'mirror/service',
  'cli/sync',
  'mirror/refresh',
];

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLong = ({ moduleId }: TestSpecification) =>
      long.some((name) => moduleId.includes(`/test/${name}.`));
    // A worker that changes the project loads everything again.
    const projects = [...new Set(sorted.map(({ project }) => project))];
    return projects.flatMap((project) => {
      const own = sorted.filter((file) => file.project === project);
      return [...own.filter(isLong), ...own.filter((file) => !isLong(file))];
    });
  }
}
