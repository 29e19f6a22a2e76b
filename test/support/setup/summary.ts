/**
 * A reporter that lists at the end which tests were skipped, with the reasons, which the default reporter only counts. It also
 * lists the failures once more, since of a long log often only the end is stored.
 */

import type { Reporter, SerializedError, TestModule } from 'vitest/node';

/** In characters. fast-check prints the whole of what failed, which may be very long. */
const longestMessage = 1_500;

/** The error in few words, and last what caused it, which for a property says what was wrong. */
function textOf({ message, cause }: Partial<SerializedError>): string {
  const shown = String(message).slice(0, longestMessage);
  return cause ? `${shown}\ncaused by: ${textOf(cause)}` : shown;
}

/**
 * @param leftOut folders of tests whose packages are not installed.
 */
export const summarise = (leftOut: readonly string[]): Reporter => ({
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
      process.stdout.write(`not run: ${folder}, which has packages of its own: npm ci --prefix ${folder}\n`);
    for (const module of modules) {
      const name = `failed on ${module.project.name}: ${module.relativeModuleId}`;
      for (const error of module.errors()) process.stdout.write(`${name}: ${textOf(error)}\n`);
      for (const test of module.children.allTests('failed'))
        for (const error of test.result().errors ?? [])
          process.stdout.write(`${name}: ${test.fullName}: ${textOf(error)}\n`);
    }
    for (const { message, stack } of errors) process.stdout.write(`not caught: ${stack ?? message}\n`);
  },
});
