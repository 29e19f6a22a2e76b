/** Says which tests were skipped, and why: the default reporter only counts them. */

import type { Reporter, TestModule } from 'vitest/node';

/** @param leftOut folders of tests whose packages are not installed. */
export const tellSkipped = (leftOut: readonly string[]): Reporter => ({
  onTestRunEnd(modules: readonly TestModule[]) {
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
  },
});
