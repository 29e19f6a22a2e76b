/** Bundles GraphiQL into `dist/explorer`, from where the gateway serves it (`src/graphql/handler.ts`). */

import { defineConfig } from 'vite';

export default defineConfig({
  root: import.meta.dirname,
  base: './',
  plugins: [
    {
      // They are two thirds of the style. The pages have the fonts of the system.
      name: 'no-fonts',
      generateBundle(_, bundle) {
        for (const file of Object.values(bundle))
          if (file.type === 'asset' && file.fileName.endsWith('.css'))
            file.source = String(file.source).replace(/@font-face\s*\{[^}]*\}/g, '');
      },
    },
  ],
  build: {
    outDir: '../dist/explorer',
    emptyOutDir: true,
    target: 'es2023',
    // Everything is a file: the policy of the page allows no `data:` for scripts and styles.
    assetsInlineLimit: 0,
    license: { fileName: 'licenses.json' },
    reportCompressedSize: false,
  },
});
