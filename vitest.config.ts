import { availableParallelism } from 'node:os';
import { configDefaults, defineConfig } from 'vitest/config';
import { foldersWithoutPackages } from './test/support/setup/folders.ts';
import { useMemory } from './test/support/setup/memory.ts';
import { LongestFirst } from './test/support/setup/order.ts';
import { summarise } from './test/support/setup/summary.ts';

useMemory();

/**
 * Which engine a test runs on is said by its file name: `x.test.ts` is about what an engine may do otherwise and runs on
 * both, `x.embedded.test.ts` and `x.postgres.test.ts` on the one, and `x.unit.test.ts` needs no database of the run: it
 * runs beside those on the embedded engine, in workers that have the gateway loaded. What takes long besides is
 * `x.slow.test.ts` and the like, which `npm test` leaves out and `npm run test:slow` runs.
 */
const all = 'test/**/*.test.ts';
const unit = 'test/**/*.unit.test.ts';
const onEmbedded = 'test/**/*.embedded.test.ts';
const onPostgres = 'test/**/*.postgres.test.ts';
/** Of what takes longest, one engine is enough in the suite; `npm run fuzz` asks both. */
const onceInSuite =
  process.env.FUZZ_MINUTES === undefined
    ? ['test/fuzz/requests.slow.test.ts', 'test/fuzz/fastpath.slow.test.ts']
    : [];

/** Where tests have packages that not everybody installs: left out where these are not there, which the run says. */
const leftOut = foldersWithoutPackages('test');
const leavesOutSlow = process.env.LEAVE_OUT === 'slow';
const excluded = [
  ...configDefaults.exclude,
  ...leftOut.map((folder) => `${folder}/**`),
  ...(leavesOutSlow ? ['test/**/*.slow.*'] : []),
];

export default defineConfig({
  // Vite would pick the ES modules of graphql where Node, and with it every dependency, picks its CommonJS.
  resolve: { alias: [{ find: /^graphql$/, replacement: 'graphql/index.js' }] },
  test: {
    reporters: ['default', summarise(leftOut, leavesOutSlow)],
    // A worker for many files, which then load the gateway once: half of the time would go into loading it.
    isolate: false,
    sequence: { sequencer: LongestFirst },
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // As long as a test needs that waits for something on a machine with much else to do.
    expect: { poll: { timeout: 10_000 } },
    // One more than there are cores: most tests wait for a database, or for a while to pass.
    maxWorkers: availableParallelism() + 1,
    projects: [
      {
        extends: true,
        test: {
          name: 'embedded',
          include: [all],
          exclude: [...excluded, ...onceInSuite, onPostgres],
          globalSetup: 'test/support/setup/embedded.ts',
        },
      },
      {
        extends: true,
        test: {
          name: 'postgres',
          include: [all],
          exclude: [...excluded, unit, onEmbedded],
          globalSetup: 'test/support/setup/postgres.ts',
        },
      },
    ],
  },
});
