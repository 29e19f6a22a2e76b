/**
 * Bundles the console into `dist/console`, from where the gateway serves it (`src/pages/apps.ts`). `npx vite console`
 * serves it from its source, and passes its requests on to a gateway.
 */

import { defineConfig } from 'vite';

export default defineConfig({
  root: import.meta.dirname,
  base: './',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  server: { proxy: { '/graphql': { target: 'http://127.0.0.1:4000', ws: true } } },
  build: {
    outDir: '../dist/console',
    emptyOutDir: true,
    target: 'es2023',
    // The first that know `light-dark`, which the theme depends on, and popovers.
    cssTarget: ['chrome123', 'firefox125', 'safari17.5'],
    // Everything is a file: the policy of the page allows no `data:`.
    assetsInlineLimit: 0,
    license: { fileName: 'licenses.json' },
    reportCompressedSize: false,
  },
});
