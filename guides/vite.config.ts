/** Renders the guides into `dist/guides`, from where the gateway serves them (`src/pages/guides.ts`), with the script of their search. */

import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { defineConfig, type Plugin } from 'vite';
import { writeIndex } from './find.ts';
import { renderGuides } from './render.ts';

/** Writes `guides.json`: the pages, and the addresses of the script and of the index below `/guides`. */
const guides: Plugin = {
  name: 'guides',
  generateBundle(_, bundle) {
    const emit = (name: string, source: string | Uint8Array) =>
      this.getFileName(this.emitFile({ type: 'asset', name, source }));
    const pages = renderGuides((file) => emit(basename(file), readFileSync(file)));
    const index = emit('index.json', writeIndex(pages.flatMap(({ sections }) => sections)));
    const script = Object.values(bundle).find(({ type }) => type === 'chunk')?.fileName;
    const source = JSON.stringify({ pages: pages.map(({ sections, ...page }) => page), index, script });
    this.emitFile({ type: 'asset', fileName: 'guides.json', source });
  },
};

export default defineConfig({
  root: import.meta.dirname,
  plugins: [guides],
  build: {
    outDir: '../dist/guides',
    emptyOutDir: true,
    target: 'es2023',
    // Nearly all of its time is for the plugin, of which Rolldown warns.
    rolldownOptions: { input: 'guides/search.ts', checks: { pluginTimings: false } },
    license: { fileName: 'licenses.json' },
    reportCompressedSize: false,
  },
});
