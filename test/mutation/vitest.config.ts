/** The tests, each on one engine, with the instrumented copies in place of the sources. */

import { existsSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path/posix';
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import base from '../../vitest.config.ts';
import { output } from './output.ts';

/** Keeps the order in which the files were given. */
class AsGiven extends BaseSequencer {
  override sort(files: TestSpecification[]) {
    return Promise.resolve(files);
  }
}

function projectOf(engine: string, include: string[], exclude: string[]): TestProjectInlineConfiguration {
  const globalSetup = `test/support/setup/${engine}.ts`;
  return { extends: true, test: { name: engine, include, exclude, globalSetup } };
}

/** Not of the suite, or with packages of their own. */
const elsewhere = ['test/large/**', '**/node_modules/**'];
const root = join(import.meta.dirname, '../..');

export default defineConfig({
  ...base,
  root,
  plugins: [
    {
      name: 'mutants',
      enforce: 'pre',
      load(id) {
        const file = relative(root, id);
        const copy = join(root, output, file);
        const isMutated = file.startsWith(process.env.MUTATED ?? 'src/') && existsSync(copy);
        return isMutated ? readFileSync(copy, 'utf8') : undefined;
      },
    },
  ],
  test: {
    ...base.test,
    silent: true,
    // A test or a hook that does not end in this time has noticed that something hangs.
    ...{ testTimeout: 15_000, hookTimeout: 15_000 },
    setupFiles: ['test/mutation/setup.ts', 'test/support/setup/afterEach.ts'],
    sequence: { sequencer: AsGiven },
    // A second worker would load the sources again, mostly to be stopped by a failure in the first.
    maxWorkers: 1,
    // One engine is enough to notice a fault: PostgreSQL is the faster one.
    projects: [
      projectOf('postgres', ['test/**/*.test.ts'], ['test/**/*.{unit,embedded}.*', ...elsewhere]),
      projectOf('embedded', ['test/**/*.{unit,embedded}.test.ts'], elsewhere),
    ],
  },
});
