/** The pages besides the console: how they look, the reference of each API, and the home page. */

import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { postJson } from '../support/gateway.ts';
import { demoGateway } from '../support/setUp.ts';
import { expectAccessible } from './axe.ts';
import { useBrowser } from './browser.ts';
import { overhang } from './console.ts';

const browser = useBrowser();
const gateway = await demoGateway();

it.each([
  { name: 'home', path: '/', shows: 'Beginner Program' },
  { name: 'rest', path: '/docs', shows: 'Users' },
  { name: 'schema', path: '/schema', shows: 'Queries' },
  { name: 'guide', path: '/guides/configuration', shows: 'Values in files' },
  { name: 'error', path: '/nothing', shows: 'Not Found' },
  { name: 'explorer', path: '/graphql', shows: 'dttDevices' },
])('$name is accessible, and no wider than any window', async ({ name, path, shows }) => {
  const { page, complaints } = await browser.open(gateway.url + path);
  await page.getByText(shows).first().waitFor();
  // The tree of GraphiQL is not ours, and the cards of a section are alike.
  await expectAccessible(page, name, '.graphiql-container, details:nth-of-type(n + 4)');
  expect(complaints.filter((text) => !text.includes('404 (Not Found)'))).toEqual([]);
});

it('has one theme: what is chosen on one page holds on all, in every tab, from before anything is painted', async () => {
  /** The theme of the page: when its body began, and now. */
  const themes = (of: Page) =>
    of.evaluate(() => [document.documentElement.dataset.first, document.documentElement.style.colorScheme]);
  const { page, complaints } = await browser.open(`${gateway.url}/docs`);
  await page.context().addInitScript(() => {
    const { documentElement: first } = document;
    const seen = new MutationObserver(() => {
      if (document.body)
        document.documentElement.dataset.first ??= document.documentElement.style.colorScheme;
    });
    seen.observe(first ?? document, { childList: true, subtree: true });
  });
  const explorer = await page.context().newPage();
  await explorer.goto(`${gateway.url}/graphql`);
  await explorer.getByRole('tab', { name: 'Devices' }).waitFor();
  await page.getByLabel('Theme').selectOption('Dark');
  await expect.poll(() => explorer.locator('body.graphiql-dark').count()).toBe(1);
  expect(await themes(explorer)).toEqual(['', 'dark']);
  for (const path of ['/', '/schema', '/console', '/graphql', '/nothing']) {
    const other = await page.context().newPage();
    await other.goto(gateway.url + path);
    expect([path, await themes(other)]).toEqual([path, ['dark', 'dark']]);
    expect(await other.getByLabel('Theme').inputValue()).toBe('dark');
    await other.close();
  }
  await explorer.getByRole('button', { name: 'Open settings dialog' }).click();
  await explorer.getByRole('button', { name: 'Light', exact: true }).click();
  await expect.poll(() => page.getByLabel('Theme').inputValue()).toBe('light');
  await explorer.getByRole('button', { name: 'System', exact: true }).click();
  await expect.poll(() => page.evaluate(() => document.documentElement.style.colorScheme)).toBe('');
  expect(complaints).toEqual([]);
});

it('sends requests with the demo token, which is filled in already', async () => {
  const { page, complaints } = await browser.open(`${gateway.url}/docs`);
  const route = (path: string, method = 'GET') =>
    page.locator('details', { has: page.locator(`form[data-path="${path}"][data-method="${method}"]`) });
  async function send(path: string, method?: string): Promise<string> {
    const form = route(path, method);
    await form.locator('summary').click();
    await form.getByRole('button', { name: 'Send' }).click();
    const output = form.locator('output');
    await output.waitFor();
    return output.innerText();
  }
  expect(await send('/dtt/templates/active')).toMatch(/GET .*active: 200, \d+ ms.*"Beginner Program"/s);
  await route('/dtt')
    .locator('input[name=limit]')
    .evaluate((input: HTMLInputElement) => {
      input.value = '1';
    });
  expect(await send('/dtt')).toMatch(/GET .*\/dtt\?limit=1: 200.*"limit": 1/s);
  expect(await send('/dtt/templates/{id}', 'POST')).toMatch(/POST .*templates\/1: 200/);
  await page.getByText('That of the demo account').waitFor();
  expect(complaints).toEqual([]);
});

it('the search leaves the cards with all its words, in both references, and a link opens its card', async () => {
  const { page, complaints } = await browser.open(`${gateway.url}/schema`);
  const shown = (selector: string) => page.locator(`${selector}:visible`).allInnerTexts();
  const [all] = [(await shown('summary')).length];
  await page.getByLabel('Search').fill('no such words');
  expect(await shown('summary')).toEqual([]);
  await page.getByText('Nothing has these words.').waitFor();
  expect(await shown('#introduction')).toEqual([]);
  await page.getByLabel('Search').fill('OWN stays');
  expect(await shown('summary')).toEqual([expect.stringContaining('activateTemplate')]);
  expect(await shown('h2')).toEqual(['Mutations']);
  await page.getByText(`1 of ${all}`).waitFor();
  await page.getByText('activateTemplate').first().click();
  await page.getByRole('link', { name: 'ActivateTemplatePayload' }).click();
  await page.locator('#ActivateTemplatePayload[open]').getByText('scheduleTypeChanged').waitFor();
  await page.goto(`${gateway.url}/docs`);
  await page.getByLabel('Search').fill('/dtt/templates/active');
  expect(await shown('h2')).toEqual(['DTT Templates']);
  expect(complaints).toEqual([]);
});

it('the search of the guides is used by the keyboard alone, and opens the section', async () => {
  const { page, complaints } = await browser.open(`${gateway.url}/guides/decisions/fast-path`);
  await page.keyboard.press('/');
  await page.keyboard.type('password with special characters');
  await page.getByText(/^\d+ results$/).waitFor();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.waitForURL(`${gateway.url}/guides/configuration#passwords-in-urls`);
  await page.keyboard.press('/');
  await page.keyboard.type('zzzzz');
  await page.getByText('No results for "zzzzz".').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('heading', { name: 'Passwords in URLs' }).waitFor();
  await page.locator('.code').first().getByRole('button', { name: 'Copy' }).waitFor();
  expect(complaints).toEqual([]);
});

it('shows the demo account live, runs a query, and copies the token, also on a screen of 320 pixels', async () => {
  const { page, complaints } = await browser.open(gateway.url, { viewport: { width: 320, height: 568 } });
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  const program = () => page.locator('#program').textContent();
  await expect.poll(program).toBe('Beginner Program');
  // Another client activates another one.
  await postJson(gateway, gateway.token, '/dtt/templates/2', { isActive: true });
  await expect.poll(program).not.toBe('Beginner Program');
  await page.getByLabel('Try a query').fill('{ viewer { username } }');
  await page.getByRole('button', { name: 'Run' }).click();
  await expect.poll(() => page.getByLabel('Its response').inputValue()).toContain('"username": "demo"');
  await page
    .getByText('The token of the demo account')
    .locator('..')
    .getByRole('button', { name: 'Copy' })
    .click();
  await page.getByRole('button', { name: 'Copied' }).waitFor();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(gateway.token);
  const isCutOff = await page.$$eval('.copied > pre', (all) =>
    all.some(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth),
  );
  expect(isCutOff).toBe(false);
  expect(await overhang(page)).toBe(0);
  expect(complaints).toEqual([]);
});

it('the REST reference follows a route: it shows the response, and each change, until it is stopped', async () => {
  const { page, complaints } = await browser.open(`${gateway.url}/docs#getActiveDttTemplate`);
  const card = page.locator('#getActiveDttTemplate');
  await card.getByRole('button', { name: 'Follow' }).click();
  await card.getByText('"name": "Beginner Program"').first().waitFor();
  const { client } = gateway.database;
  const { id } = await client.dttTemplate.findFirstOrThrow({ where: { name: 'Beginner Program' } });
  await client.dttTemplate.update({ where: { id }, data: { name: 'Renamed' } });
  await card.getByText('"name": "Renamed"').waitFor();
  await card.getByRole('button', { name: 'Stop' }).click();
  await card.getByRole('button', { name: 'Follow' }).waitFor();
  await client.dttTemplate.update({ where: { id }, data: { name: 'Beginner Program' } });
  expect(await card.getByText('"name": "Renamed"').count()).toBe(1);
  expect(complaints).toEqual([]);
});
