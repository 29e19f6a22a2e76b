import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { configDefaults, defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';

import { LongestFirst } from './test/support/setup/order.ts';
import { summarise } from './test/support/setup/summary.ts';
import { useTemporaryFolder } from './test/support/setup/temporary.ts';

useTemporaryFolder();

/**
 * Which engine a test runs on is said by its file name: `x.test.ts` is about what an engine may do otherwise and runs on
 * both, `x.embedded.test.ts` and `x.postgres.test.ts` on the one, and `x.unit.test.ts` needs no database of the run: it
 * runs beside those on the embedded engine, in workers that have the gateway loaded. What takes long besides is
 * `x.slow.test.ts` and the like, which `npm test` leaves out and `npm run test:slow` runs.
 */
const all = 'test/**/*.test.ts';
const slow = 'test/**/*.slow.*test.ts';
const unit = 'test/**/*.unit.test.ts';
const onEmbedded = 'test/**/*.embedded.test.ts';
const onPostgres = 'test/**/*.postgres.test.ts';
/** Of what takes longest, one engine is enough in the suite; `npm run fuzz` asks both. */
const onceInSuite =
  process.env.FUZZ_MINUTES === undefined
    ? [
        ...['test/fuzz/requests.slow.test.ts', 'test/fuzz/fastpath.slow.test.ts'],
        ...['test/schema/filtering/oracle.test.ts', 'test/schema/loading/statistics.test.ts'],
        ...['test/database/reader/statement.test.ts', 'test/extensions/followed/followed.test.ts'],
      ]
    : [];

/** These tests have packages of their own. They are left out where those are not installed, and the run says so. */
const leftOut = ['test/large'].filter((folder) => !existsSync(`${folder}/node_modules`));
const excluded = [...configDefaults.exclude, ...leftOut.map((folder) => `${folder}/**`)];

export default defineConfig({
  // Vite would pick the ES modules of graphql where Node, and with it every dependency, picks its CommonJS.
  resolve: { alias: [{ find: /^graphql$/, replacement: 'graphql/index.js' }] },
  test: {
    reporters: ['default', summarise(leftOut)],
    // A worker for many files, which then load the gateway once: half of the time would go into loading it.
    isolate: false,
    setupFiles: 'test/support/setup/afterEach.ts',
    sequence: { sequencer: LongestFirst },
    // As long as a test needs that waits for something on a machine with much else to do.
    testTimeout: 90_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 20_000 } },
    // Two more than there are cores: most tests wait for a database, or for a while to pass.
    maxWorkers: availableParallelism() + 2,
    projects: [
      ...projectsOf('embedded', [...onceInSuite, onPostgres]),
      ...projectsOf('postgres', [unit, onEmbedded]),
    ],
  },
});

/** The projects of an engine: `npm test` runs the first of each, and `npm run test:slow` the others. */
function projectsOf(engine: string, excludedThere: readonly string[]): TestProjectInlineConfiguration[] {
  const exclude = [...excluded, ...excludedThere];
  const globalSetup = `test/support/setup/${engine}.ts`;
  return [
    { extends: true, test: { name: engine, include: [all], exclude: [...exclude, slow], globalSetup } },
    { extends: true, test: { name: `${engine}-slow`, include: [slow], exclude, globalSetup } },
  ];
}
