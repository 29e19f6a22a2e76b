/** The guides as a gateway serves them: pages, the files that they load, and what does not exist. The build has made them. */

import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { gatewayWith } from '../support/setUp.ts';

const { gateway } = await gatewayWith([]);
const folder = 'dist/reading';
const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .filter((name) => /^guides.*\.html$/.test(name))
  .map((name) => `/${name.replace('.html', '').replaceAll('\\', '/')}`);
const assets = readdirSync(`${folder}/assets`);
const index = assets.find((name) => name.endsWith('.json'));
const script = assets.find((name) => name.endsWith('.js'));

it('every guide is a page that loads its own files alone, and is revalidated', async () => {
  expect(paths).toEqual(expect.arrayContaining(['/guides', '/guides/rest', '/guides/decisions/fast-path']));
  for (const path of paths) {
    const response = await fetch(gateway.url + path);
    const page = await response.text();
    expect(response.status).toBe(200);
    expect(page.match(/aria-current="page">[^<]*/g)).toContain('aria-current="page">Guides');
    expect(page).not.toMatch(/\{\{(header|html|title|contents)\}\}| style="/);
    const files = [...page.matchAll(/ (?:src|data-index)="([^"]+)"/g)].map(([, file = '']) => file);
    const loaded = files.map((file) => new URL(file, response.url).pathname);
    expect(loaded).toEqual(expect.arrayContaining([`/guides/assets/${script}`, `/guides/assets/${index}`]));
    for (const file of loaded) expect((await fetch(gateway.url + file, { method: 'HEAD' })).status).toBe(200);
    const etag = response.headers.get('ETag') ?? '';
    const again = await fetch(response.url, { headers: { 'If-None-Match': etag } });
    expect([again.status, etag.length > 5]).toEqual([304, true]);
    expect(response.headers.get('Content-Security-Policy')).toMatch(
      /^default-src 'none'; .*style-src 'sha256-\S+'; script-src 'self' 'sha256-\S+' 'sha256-\S+'; img-src 'self' data:; connect-src 'self'$/,
    );
  }
});

it.each(['/guides/nothing', '/guides/rest.md', '/guides/..%2fdocs', '/guides/docs'])(
  '%s is not found, and the response says where the guides are',
  async (path) => {
    const response = await fetch(gateway.url + path);
    expect([response.status, await response.text()]).toEqual([404, 'Not found. Try /guides.\n']);
  },
);

it('the icon of the pages is also where browsers look for it', async () => {
  const response = await fetch(`${gateway.url}/favicon.ico`);
  expect([response.status, response.headers.get('Content-Type')]).toEqual([200, 'image/svg+xml']);
  expect(await response.text()).toBe(readFileSync('src/pages/icon.svg', 'utf8'));
});
