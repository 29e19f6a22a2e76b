/**
 * Makes the pages to read: the guides from `docs`, with the script of their search, and the references from `openapi.json` and
 * `schema.graphql`. The gateway serves them (`src/pages/reading.ts`).
 */

import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { defineConfig, type Plugin } from 'vite';
import { escapeHtml } from '../src/pages/template.ts';
import { writeIndex } from './find.ts';
import { renderGuides } from './guides.ts';
import { readKind } from './page.ts';
import { restReference } from './restReference.ts';
import { schemaReference } from './schemaReference.ts';

const fillGuide = readKind('guide.html');
const read = (name: string) => readFileSync(name, 'utf8');

/** Writes a file for each page, such as `guides/rest.html`. */
const reading: Plugin = {
  name: 'reading',
  generateBundle(_, bundle) {
    const emit = (name: string, source: string | Uint8Array) =>
      this.getFileName(this.emitFile({ type: 'asset', name, source }));
    const write = (path: string, source: string) =>
      this.emitFile({ type: 'asset', fileName: `${path.slice(1)}.html`, source });
    const guides = renderGuides((file) => emit(basename(file), readFileSync(file)));
    const index = emit('index.json', writeIndex(guides.flatMap(({ sections }) => sections)));
    const script = Object.values(bundle).find(({ type }) => type === 'chunk')?.fileName;
    for (const { path, title, description, html, contents } of guides) {
      const base = `${'../'.repeat(path.split('/').length - 2)}guides`;
      const files = { guides: base, script: `${base}/${script}`, index: `${base}/${index}` };
      const texts = { title: escapeHtml(title), description: escapeHtml(description) };
      write(path, fillGuide({ html, contents, ...texts, ...files }));
    }
    write('/docs', restReference(JSON.parse(read('openapi.json'))));
    write('/schema', schemaReference(read('schema.graphql')));
  },
};

export default defineConfig({
  root: import.meta.dirname,
  plugins: [reading],
  build: {
    outDir: '../dist/reading',
    emptyOutDir: true,
    target: 'es2023',
    // Nearly all of its time is for the plugin, of which Rolldown warns.
    rolldownOptions: { input: 'reading/search.ts', checks: { pluginTimings: false } },
    license: { fileName: 'licenses.json' },
    reportCompressedSize: false,
  },
});
