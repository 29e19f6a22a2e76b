/**
 * Serves the guides and the references, which the build makes (`reading/vite.config.ts`): a file for each page, without what depends on
 * the gateway.
 */

import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { publicAddressOf } from '../config/config.ts';
import { root } from '../root.ts';
import { hasGraphiql, headerFor, type PageSettings } from './links.ts';
import {
  bundledFiles,
  type PageHandler,
  type Policy,
  pageByToken,
  pageResponse,
  staticResponse,
  type TokenFor,
} from './page.ts';
import { policyOf } from './template.ts';

const folder = new URL('dist/reading/', root);

/** The page with its header. */
async function readPage(path: string, settings: PageSettings): Promise<{ html: string; policy: Policy }> {
  const html = await readFile(new URL(`.${path}.html`, folder), 'utf8');
  return { html: html.replace('{{header}}', () => headerFor(settings, path)), policy: policyOf(html) };
}

/** @param tokenFor gives the token that is filled in. */
export const createReference = (
  path: '/docs' | '/schema',
  tokenFor: TokenFor,
  settings: PageSettings,
): PageHandler =>
  pageByToken(tokenFor, 'Accept-Encoding, Host', async (token = '') => {
    const { html, policy } = await readPage(path, settings);
    const page = html.replace('{{token}}', token);
    const links = /<a href="graphql\?[^<]*<\/a>/g;
    return pageResponse(hasGraphiql(settings) ? page : page.replace(links, ''), policy);
  });

/** The guides, and the files that they load. */
export function createGuides(settings: PageSettings): PageHandler {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const paths = names.flatMap((name) => {
    const [, path] = /^(guides.*)\.html$/.exec(name.replaceAll('\\', '/')) ?? [];
    return path === undefined ? [] : `/${path}`;
  });
  const handlers = new Map(
    paths.map((path) => [
      path,
      staticResponse(async () => {
        const { html, policy } = await readPage(path, settings);
        const own = { 'script-src': `'self' ${policy['script-src']}`, 'img-src': "'self' data:" };
        return pageResponse(html, { ...policy, ...own });
      }),
    ]),
  );
  const files = bundledFiles('reading', '/guides', publicAddressOf(settings, '/guides'));
  return (exchange) => (handlers.get(exchange.path) ?? files)(exchange);
}
