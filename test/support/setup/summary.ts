/**
 * A reporter that lists at the end which tests were skipped, with the reasons, which the default reporter only counts. It also
 * lists the failures once more, since of a long log often only the end is stored.
 */

import type { Reporter, SerializedError, TestModule } from 'vitest/node';

/**
 * @param leftOut folders of tests whose packages are not installed.
 * @param leavesOutSlow whether the slow tests were left out.
 */
export const summarise = (leftOut: readonly string[], leavesOutSlow: boolean): Reporter => ({
  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]) {
    for (const module of modules) {
      for (const test of module.children.allTests('skipped')) {
        const result = test.result();
        const reason = result.state === 'skipped' ? result.note : undefined;
        process.stdout.write(
          `skipped on ${module.project.name}: ${test.fullName}: ${reason ?? 'without a reason'}\n`,
        );
      }
    }
    for (const folder of leftOut)
      process.stdout.write(
        `not run: ${folder}, which has packages of its own: npm run packages -- ${folder}\n`,
      );
    if (leavesOutSlow) process.stdout.write('not run: what takes long: npm run test:slow\n');
    for (const module of modules) {
      const name = `failed on ${module.project.name}: ${module.relativeModuleId}`;
      for (const error of module.errors()) process.stdout.write(`${name}: ${error.message}\n`);
      for (const test of module.children.allTests('failed'))
        for (const error of test.result().errors ?? [])
          process.stdout.write(`${name}: ${test.fullName}: ${error.message}\n`);
    }
    for (const { message, stack } of errors) process.stdout.write(`not caught: ${stack ?? message}\n`);
  },
});
