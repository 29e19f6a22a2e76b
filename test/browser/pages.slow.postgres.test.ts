/** The pages besides the console: how they look, the reference of each API, and the home page. */

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Locator, Page } from 'playwright-core';
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
  const { page } = await browser.open(gateway.url + path, { expected: /404 \(Not Found\)/ });
  await page.getByText(shows).first().waitFor();
  // The tree of GraphiQL is not ours, and the entries of a section are alike.
  await expectAccessible(
    page,
    name,
    '.graphiql-container, aside li:nth-of-type(n + 3), section > .entry:nth-of-type(n + 2)',
  );
});

it('has one theme: what is chosen on one page holds on all, in every tab, from before anything is painted', async () => {
  /** The theme of the page: when its body began, and now. */
  const themes = (of: Page) =>
    of.evaluate(() => [document.documentElement.dataset.first, document.documentElement.style.colorScheme]);
  const { page } = await browser.open(`${gateway.url}/docs`);
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
});

it('sends requests with the demo token, which is filled in already, or with that of the console', async () => {
  const { page } = await browser.open(`${gateway.url}/docs`, { expected: /401 \(Unauthorized\)/ });
  async function send(id: string): Promise<string> {
    const form = page.locator(`#${id}`);
    await form.getByRole('button', { name: 'Send' }).click();
    const output = form.locator('output');
    await output.locator('.code').waitFor();
    return output.innerText();
  }
  expect(await send('getActiveDttTemplate')).toMatch(/GET .*active: 200, \d+ ms.*"Beginner Program"/s);
  expect(await send('listDttDevices')).toMatch(/GET .*\/dtt\?limit=1: 200.*"limit": 1/s);
  expect(await send('activateDttTemplate')).toMatch(/POST .*templates\/1: 200/);
  await page.getByText("Filled in with the demo account's token.").waitFor();
  await page.evaluate(() => sessionStorage.setItem('dovetail-token', 'dvt_of_the_console'));
  await page.reload();
  await page.getByText("Filled in with the console's token.").waitFor();
  expect(await page.getByLabel('API token').inputValue()).toBe('dvt_of_the_console');
  expect(await send('getActiveDttTemplate')).toMatch(/: 401/);
  await page.getByLabel('API token').fill('dvt_typed');
  await page.getByText('It is not stored.').waitFor();
});

it('has the same request in three languages, which run as they are copied', async () => {
  const { page } = await browser.open(`${gateway.url}/docs`);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  const programs = {
    curl: ['sh', '-c'],
    Python: ['python3', '-c'],
    JavaScript: ['node', '--input-type=module', '-e'],
  };
  async function outputOf(place: Locator, language: keyof typeof programs): Promise<string> {
    await place.getByLabel('Language').selectOption(language);
    await place.locator('.copy').first().click();
    const [program = '', ...options] = programs[language];
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    const { stdout } = await promisify(execFile)(program, [...options, copied]);
    return stdout;
  }
  for (const id of ['listDttTemplates', 'activateDttTemplate']) {
    const form = page.locator(`#${id}`);
    expect(await outputOf(form, 'curl')).toMatch(/^\{"ok":true,"data":.*"isActive"/);
    expect(await outputOf(form, 'Python')).toMatch(/^\{.*'isActive': (True|False)/s);
    expect(await outputOf(form, 'JavaScript')).toMatch(/^\{.*isActive: /s);
  }
  await page.goto(`${gateway.url}/schema`);
  // The language is the one that was chosen.
  expect(await page.getByLabel('Language').inputValue()).toBe('JavaScript');
  expect(await outputOf(page.locator('#introduction'), 'JavaScript')).toContain("username: 'demo'");
  expect(await outputOf(page.locator('#introduction'), 'curl')).toBe(
    '{"data":{"viewer":{"username":"demo"}}}',
  );
});

it('the search leaves the entries with all its words, in both references, by the keyboard', async () => {
  const { page } = await browser.open(`${gateway.url}/schema`);
  const shown = (selector: string) => page.locator(`${selector}:visible`).allInnerTexts();
  const all = (await shown('.entry h3')).length;
  await page.keyboard.press('/');
  await page.keyboard.type('no such words');
  await page.getByText('No results for "no such words".').waitFor();
  expect(await shown(':is(.entry, aside li)')).toEqual([]);
  await page.getByLabel('Search').fill('OWN stays');
  expect(await shown('.entry h3')).toEqual(['activateTemplate']);
  expect(await shown(':is(main, aside) h2')).toEqual(['Mutations', 'Mutations']);
  await page.getByText(`1 of ${all}`).waitFor();
  await page.keyboard.press('Enter');
  await page.waitForURL(/#mutation-activateTemplate$/);
  // The link leads to what is hidden.
  await page
    .locator('#mutation-activateTemplate')
    .getByRole('link', { name: 'ActivateTemplatePayload' })
    .click();
  await page.locator('#ActivateTemplatePayload').getByText('scheduleTypeChanged').waitFor();
  await page.locator('aside [aria-current]').getByText('ActivateTemplatePayload').waitFor();
  await page.goto(`${gateway.url}/docs`);
  await page.getByLabel('Search').fill('/dtt/templates/active');
  expect(await shown('main h2')).toEqual(['DTT Templates']);
});

it('the search of the guides is used by the keyboard alone, and opens the section', async () => {
  const { page } = await browser.open(`${gateway.url}/guides/decisions/fast-path`);
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
});

it('shows the contents of a reference on a telephone when they are asked for', async () => {
  const { page } = await browser.open(`${gateway.url}/docs`, { viewport: { width: 360, height: 740 } });
  const contents = page.locator('#contents');
  expect(await contents.isVisible()).toBe(false);
  await page.getByRole('button', { name: 'Contents' }).click();
  await contents.getByRole('link', { name: 'GET /ossm', exact: true }).click();
  await page.waitForURL(/#listOssmDevices$/);
  await contents.waitFor({ state: 'hidden' });
  await page.keyboard.press('/');
  await expect
    .poll(() => page.getByLabel('Search').evaluate((input) => input === document.activeElement))
    .toBe(true);
});

it('shows what the search of the guides finds below it, also on a telephone', async () => {
  const { page } = await browser.open(`${gateway.url}/guides/rest`, {
    viewport: { width: 360, height: 740 },
  });
  await page.keyboard.press('/');
  await page.keyboard.type('password with special characters');
  // A link that the contents cover cannot be clicked.
  await page.getByRole('link', { name: 'Configuration › Passwords in URLs' }).click({ timeout: 10_000 });
  await page.waitForURL(`${gateway.url}/guides/configuration#passwords-in-urls`);
});

it('shows the demo account live, runs a query, and copies the token, also on a screen of 320 pixels', async () => {
  const { page } = await browser.open(gateway.url, { viewport: { width: 320, height: 568 } });
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
  const isCutOff = await page.$$eval('.code > pre', (all) =>
    all.some(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth),
  );
  expect(isCutOff).toBe(false);
  expect(await overhang(page)).toBe(0);
});

it('the REST reference follows a route: it shows the response, and each change, until it is stopped', async () => {
  await postJson(gateway, gateway.token, '/dtt/templates/1', { isActive: true });
  const { page } = await browser.open(`${gateway.url}/docs#getActiveDttTemplate`);
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
});
