import { defineConfig } from 'vitest/config';

/** Tests of behaviour run on both engines; tests of one engine, or of none, run once. */
const onOneEngine = [
  'test/config.test.ts',
  'test/kept.test.ts',
  'test/live.test.ts',
  'test/readme.test.ts',
  'test/cli/token.test.ts',
  'test/database/demo.test.ts',
  'test/database/embedded.test.ts',
  'test/database/lock.test.ts',
  'test/database/socket.test.ts',
  'test/schema/page.test.ts',
  'test/schema/print.test.ts',
  'test/main.test.ts',
  'test/sync/faults.test.ts',
  'test/sync/refresh.test.ts',
  'test/sync/upstream.test.ts',
];

export default defineConfig({
  // Vite would pick the ES modules of graphql where Node, and with it every dependency, picks its CommonJS.
  resolve: { alias: [{ find: /^graphql$/, replacement: 'graphql/index.js' }] },
  test: {
    testTimeout: 30_000,
    hookTimeout: 60_000,
    projects: [
      {
        extends: true,
        test: {
          name: 'embedded',
          include: ['test/**/*.test.ts'],
          globalSetup: 'test/setup/embedded.ts',
        },
      },
      {
        extends: true,
        test: {
          name: 'postgres',
          include: ['test/**/*.test.ts'],
          exclude: onOneEngine,
          globalSetup: 'test/setup/postgres.ts',
        },
      },
    ],
  },
});
