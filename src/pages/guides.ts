/** Serves the guides, which the build renders from `docs`, and the files that they load (`guides/vite.config.ts`). */

import { readFile } from 'node:fs/promises';
import { publicAddressOf } from '../config/config.ts';
import { root } from '../root.ts';
import { headerFor, homeFrom, type PageSettings } from './links.ts';
import { bundledFiles, type PageHandler, pageResponse, staticResponse } from './page.ts';
import { escapeHtml, readTemplate } from './template.ts';

interface Guides {
  readonly pages: readonly Readonly<Record<'path' | 'title' | 'description' | 'html' | 'contents', string>>[];
  /** The script and the index of the search, below `/guides`. */
  readonly script: string;
  readonly index: string;
}

export async function createGuides(settings: PageSettings): Promise<PageHandler> {
  const { pages, script, index }: Guides = JSON.parse(
    await readFile(new URL('dist/guides/guides.json', root), 'utf8'),
  );
  const template = readTemplate('reading.html', 'guide.html');
  const scripts = `'self' ${template.policy['script-src']}`;
  const policy = { ...template.policy, 'script-src': scripts, 'img-src': "'self' data:" };
  const handlers = new Map(
    pages.map(({ path, title, description, ...parts }) => {
      const guides = `${homeFrom(path)}guides`;
      const page = template.fill({
        ...parts,
        header: headerFor(settings, path),
        title: escapeHtml(title),
        description: escapeHtml(description),
        guides,
        script: `${guides}/${script}`,
        index: `${guides}/${index}`,
      });
      return [path, staticResponse(async () => pageResponse(page, policy))];
    }),
  );
  const files = bundledFiles('guides', '/guides', publicAddressOf(settings, '/guides'));
  return (exchange) => (handlers.get(exchange.path) ?? files)(exchange);
}
