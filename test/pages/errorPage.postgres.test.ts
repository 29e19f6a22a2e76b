/** Errors at the paths of pages: HTML for browsers, and text for programs. */

import { expect, it, vi } from 'vitest';
import { gatewayWith } from '../support/setUp.ts';

const { gateway } = await gatewayWith([]);

const browser = { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };

it.each([
  ['GET', '/nothing', 404, 'Not Found', 'There is no page at this address.'],
  ['GET', '/guides/nothing', 404, 'Not Found', 'Try /guides.'],
  ['POST', '/docs', 405, 'Method Not Allowed', 'Only GET and HEAD.'],
])('a browser that sends %s %s gets a page, with the pages that there are', async (method, path, ...says) => {
  const [status, title, hint] = says;
  const response = await fetch(gateway.url + path, { method, headers: browser });
  const page = await response.text();
  expect(response.status).toBe(status);
  expect(page).toContain(`<title>${title} – Dovetail</title>`);
  expect(page).toContain(hint);
  expect(page).not.toMatch(/\{\{|>undefined|nothing|The home page lists/);
  const links = [...page.matchAll(/<li><a href="([^"]*)"/g)].map(
    ([, link = '']) => new URL(link, gateway.url + path).pathname,
  );
  expect(links).toEqual(['/', '/console', '/graphql', '/schema', '/docs', '/guides']);
  expect(Object.fromEntries(response.headers)).toMatchObject({
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': expect.stringMatching(/^default-src 'none'; .*style-src 'sha256-\S+'/),
    'cache-control': 'no-store',
    vary: 'Accept, Authorization',
    'x-frame-options': 'SAMEORIGIN',
    ...(status === 405 && { allow: 'GET, HEAD' }),
  });
});

it('the page of a failure names the request in the log, and the probe has one as well', async () => {
  vi.spyOn(gateway.database.pool, 'query').mockRejectedValue(new Error('away') as never);
  const response = await fetch(`${gateway.url}/readyz`, {
    headers: { ...browser, 'X-Request-Id': 'mine-1' },
  });
  expect(response.status).toBe(503);
  const page = await response.text();
  expect(page).toContain('<h1>Service Unavailable</h1>');
  expect(page).toContain('<p>the database cannot be reached</p>');
  expect(page).toContain('The log names this request <code>mine-1</code>.');
  expect(await (await fetch(`${gateway.url}/readyz`)).text()).toBe('the database cannot be reached\n');
});

it('the page for a path with very many parts is not long', async () => {
  const response = await fetch(gateway.url + '/x'.repeat(2_000), { headers: browser });
  expect((await response.text()).length).toBeLessThan(20_000);
});

it.each([
  ['a program', '/nothing', {}, 'text/plain; charset=utf-8'],
  ['a client of JSON', '/nothing', { Accept: 'application/json, text/html' }, 'text/plain; charset=utf-8'],
  ['a client with a token', '/nothing', { ...browser, Authorization: 'x' }, 'text/plain; charset=utf-8'],
  ['a browser at a path of REST', '/api/v1/nothing', browser, 'application/json; charset=utf-8'],
])('%s gets no page: %s', async (_, path, headers, type) => {
  const response = await fetch(gateway.url + path, { headers });
  expect([response.ok, response.headers.get('Content-Type')]).toEqual([false, type]);
});
