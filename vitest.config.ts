import { availableParallelism } from 'node:os';
import { configDefaults, defineConfig } from 'vitest/config';
import { useMemory } from './test/setup/memory.ts';
import skipped from './test/setup/skipped.ts';

useMemory();

/** Tests of behaviour run on both engines; tests of the embedded one, or of none, run once. */
const onEmbedded = [
  'test/answer.test.ts',
  'test/body.test.ts',
  'test/connections.test.ts',
  'test/errors.test.ts',
  'test/exchange.test.ts',
  'test/gateway.test.ts',
  'test/server.test.ts',
  'test/config.test.ts',
  'test/cors.test.ts',
  'test/kept.test.ts',
  'test/live.test.ts',
  'test/loaders.test.ts',
  'test/metrics.test.ts',
  'test/readme.test.ts',
  'test/terminal.test.ts',
  'test/traces.test.ts',
  'test/browser/**',
  'test/log.test.ts',
  'test/admission.test.ts',
  'test/http/hostile.test.ts',
  'test/cli/**',
  'test/client/**',
  'test/graphql/explorer.test.ts',
  'test/pages/**',
  'test/database/demo.test.ts',
  'test/database/embedded.test.ts',
  'test/database/guest.test.ts',
  'test/database/lock.test.ts',
  'test/database/socket.test.ts',
  'test/database/sql.test.ts',
  'test/graphql/audits.test.ts',
  'test/graphql/documents.test.ts',
  'test/graphql/limits.test.ts',
  'test/graphql/persisted.test.ts',
  'test/schema/breaking.test.ts',
  'test/schema/page.test.ts',
  'test/schema/selection.test.ts',
  'test/schema/print.test.ts',
  'test/rest/deprecation.test.ts',
  'test/rest/openapi.test.ts',
  'test/sync/records.test.ts',
  'test/sync/report.test.ts',
  'test/sync/upstream.test.ts',
];

/** What can go wrong upstream has nothing to do with the engine, and takes many databases: a server makes them faster. */
const onServer = [
  'test/rateLimit.test.ts',
  'test/workers.test.ts',
  'test/database/announcements.test.ts',
  'test/database/database.test.ts',
  'test/database/pooler.test.ts',
  'test/database/session.test.ts',
  'test/doctor.test.ts',
  'test/sync/faults.test.ts',
  'test/sync/refresh.test.ts',
  // Unless it is told to go on for longer (`npm run fuzz`).
  ...(process.env.FUZZ_MINUTES === undefined ? ['test/fuzz/fuzz.test.ts'] : []),
];

export default defineConfig({
  // Vite would pick the ES modules of graphql where Node, and with it every dependency, picks its CommonJS.
  resolve: { alias: [{ find: /^graphql$/, replacement: 'graphql/index.js' }] },
  test: {
    reporters: ['default', skipped],
    // A worker for many files, which then load the gateway once: half of the time would go into loading it.
    isolate: false,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Vitest leaves one core to itself, which of two is half of them; most tests wait for a database.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    projects: [
      {
        extends: true,
        test: {
          name: 'embedded',
          include: ['test/**/*.test.ts'],
          exclude: [...configDefaults.exclude, ...onServer],
          globalSetup: 'test/setup/embedded.ts',
        },
      },
      {
        extends: true,
        test: {
          name: 'postgres',
          include: ['test/**/*.test.ts'],
          exclude: [...configDefaults.exclude, ...onEmbedded],
          globalSetup: 'test/setup/postgres.ts',
        },
      },
    ],
  },
});
