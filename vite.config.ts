/**
 * `vite build` bundles the gateway and most of its packages into a few files, `dist/gateway`: Node needs half of a start to
 * find and open the 1,200 files that these are made of (docs/decisions/bundle.md).
 */

import { defineConfig } from 'vite';

/**
 * Packages that are not bundled. They read files of their own, or are loaded only when a setting asks for them. They must not
 * share a package with the bundle: it would be loaded twice.
 */
const external = [
  '@electric-sql/pglite',
  '@opentelemetry/api',
  '@opentelemetry/core',
  '@opentelemetry/exporter-trace-otlp-http',
  '@opentelemetry/resources',
  '@opentelemetry/sdk-trace-base',
  '@prisma/client',
  'pg-native',
  'prom-client',
];

export default defineConfig({
  // Vite would pick the ES modules of graphql for some packages and its CommonJS for others.
  resolve: { alias: [{ find: /^graphql$/, replacement: 'graphql/index.js' }] },
  ssr: { noExternal: true, external },
  build: {
    ssr: true,
    target: 'es2023',
    outDir: 'dist/gateway',
    rolldownOptions: {
      input: ['src/cli/program.ts', 'src/cli/packDatabase.ts'],
      output: { entryFileNames: '[name].js', chunkFileNames: '[name].js' },
    },
    // The licences of the bundled packages.
    license: { fileName: 'LICENSES.md' },
    reportCompressedSize: false,
  },
});
