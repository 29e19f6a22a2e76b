/** Bundles the console into `dist/console`, from where the gateway serves it (`src/pages/console.ts`). */

import { defineConfig } from 'vite';

export default defineConfig({
  root: import.meta.dirname,
  base: '/console/',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: '../dist/console',
    emptyOutDir: true,
    target: 'es2023',
    // Everything is a file: the policy of the page allows no `data:`.
    assetsInlineLimit: 0,
    reportCompressedSize: false,
  },
});
