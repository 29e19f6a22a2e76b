/** Bundles GraphiQL into `dist/explorer`, from where the gateway serves it (`src/graphql/handler.ts`). */

import { defineConfig } from 'vite';

export default defineConfig({
  root: import.meta.dirname,
  base: './',
  plugins: [
    {
      // The fonts are two thirds of the style: the pages have those of the system. GraphiQL's colours are parts of `hsl()`, which cannot
      // depend on the theme; so they become whole ones.
      name: 'own-look',
      generateBundle(_, bundle) {
        for (const file of Object.values(bundle))
          if (file.type === 'asset' && file.fileName.endsWith('.css'))
            file.source = String(file.source)
              .replace(/@font-face\s*\{[^}]*\}/g, '')
              .replace(/hsl\((var\(--color-\w+\))\)/g, '$1')
              .replace(
                /hsla\((var\(--color-\w+\)), ?(var\([\w-]+\)|[\d.]+)\)/g,
                'color-mix(in srgb, $1 calc($2 * 100%), transparent)',
              );
      },
    },
  ],
  build: {
    outDir: '../dist/explorer',
    emptyOutDir: true,
    target: 'es2023',
    // As those of the console.
    cssTarget: ['chrome123', 'firefox125', 'safari17.5'],
    // Everything is a file: the policy of the page allows no `data:` for scripts and styles.
    assetsInlineLimit: 0,
    license: { fileName: 'licenses.json' },
    reportCompressedSize: false,
  },
});
