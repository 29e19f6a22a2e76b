/** The pages of docs/getting-started.md, served from another origin, in a real browser. */

import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { afterAll, expect, it } from 'vitest';
import { blocksOf } from '../docs/markdown.ts';
import { openBeside, openTestGateway, type TestGateway } from '../support/gateway.ts';
import { listen, shut } from '../support/listen.ts';
import { gatewayBeside, gatewayWith } from '../support/setUp.ts';
import { useBrowser } from './browser.ts';

const browser = useBrowser();
const [block, live] = blocksOf(readFileSync('docs/getting-started.md', 'utf8')).filter(
  ({ language }) => language === 'html',
);

/** The page that the frontend's server sends. */
let html = '';

const frontend = createServer((_, response) => {
  response.setHeader('Content-Type', 'text/html').end(html);
});
const origin = await listen(frontend);
afterAll(() => shut(frontend));
const settings = { CORS_ORIGINS: origin };
const { gateway: open, database, alice } = await gatewayWith(['alice'], { settings });
const closed = await gatewayBeside(database, { logLevel: 'warn' });

/** Opens the documented page with the address of this gateway and this token. */
async function openPage(gateway: TestGateway, token: string, text = block?.text ?? '', expected?: RegExp) {
  html = text.replace('http://localhost:4000', gateway.url).replace('YOUR_API_TOKEN', token);
  return browser.open(origin, { others: [gateway.url], ...(expected && { expected }) });
}

it('shows the data of the documented query', async () => {
  const { page } = await openPage(open, alice.token);
  await page.getByText('alice').waitFor();
});

it('shows each change that the documented subscription receives', async () => {
  const { page } = await openPage(open, alice.token, live?.text);
  await page.getByText('none is active').waitFor();
  const [id] = alice.dttTemplates;
  await open.database.client.user.update({ where: { id: alice.userId }, data: { activeTemplateId: id } });
  const active = await open.database.client.dttTemplate.findUniqueOrThrow({ where: { id } });
  await page.getByText(active.name, { exact: true }).waitFor();
  await page.close();
});

it('says that a token is wrong, and not that to load the page again would help', async () => {
  const { page } = await openPage(open, 'wrong', live?.text, /401/);
  await page.getByText('unknown or revoked').waitFor();
  await page.waitForLoadState('networkidle');
  expect(await page.locator('body').innerText()).not.toContain('load the page again');
});

it('says to load the page again when the stream of a valid token has ended', async () => {
  const gateway = await openTestGateway(await openBeside(database), { settings });
  const { page } = await openPage(gateway, alice.token, live?.text, /ERR_INCOMPLETE_CHUNKED_ENCODING/);
  await expect.poll(() => page.locator('body').innerText()).not.toBe('');
  await gateway.close();
  await page.getByText('(the stream has ended: load the page again)').waitFor();
});

it('is blocked by CORS when CORS_ORIGINS does not list its origin, and the gateway logs the setting', async () => {
  for (const text of [block?.text, live?.text]) {
    const { page, complaints } = await openPage(closed, alice.token, text, /CORS policy|ERR_FAILED/);
    await page.getByText('is this page in CORS_ORIGINS?').waitFor();
    expect(complaints.join('\n')).toMatch(/blocked by CORS policy/);
  }
  expect(closed.log.map((line) => JSON.parse(line).msg)).toEqual([
    `"${origin}" is not an origin whose pages may use this gateway: CORS_ORIGINS does not name it`,
  ]);
});
