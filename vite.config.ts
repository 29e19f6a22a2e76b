/**
 * `vite build` bundles the gateway and all its packages but one into `dist/gateway`: so the
 * 1,200 files of these packages need not be installed, and Node starts in half of the time (docs/decisions/bundle.md).
 */

import { defineConfig } from 'vite';

/** PGlite reads files of its own, so it stays a package. `pg` asks for `pg-native`, which is not installed. */
const external = ['@electric-sql/pglite', 'pg-native'];

export default defineConfig({
  // Vite would pick the ES modules of graphql for some packages and its CommonJS for others. Of CommonJS, every use of a name calls a getter.
  resolve: {
    alias: [
      { find: /^graphql$/, replacement: 'graphql/index.mjs' },
      { find: /^graphql\/(.+?)(\.m?js)?$/, replacement: 'graphql/$1.mjs' },
    ],
  },
  ssr: { noExternal: true, external },
  build: {
    ssr: true,
    target: 'es2023',
    outDir: 'dist/gateway',
    rolldownOptions: {
      input: ['src/cli/program.ts', 'packDatabase.ts'],
      output: {
        ...{ entryFileNames: '[name].js', chunkFileNames: '[name].js' },
        // The core's modules that several files share would otherwise be a file each.
        codeSplitting: { groups: [{ name: 'core', test: /\/src\/(?!extensions|cli)/, minShareCount: 2 }] },
      },
    },
    // The bundled packages, for package.ts.
    license: { fileName: 'licenses.json' },
    reportCompressedSize: false,
  },
});
