/** GraphiQL in a browser that opens it for the first time. */

import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { graphqlOnce } from '../support/gateway.ts';
import { demoGateway } from '../support/setUp.ts';
import { useBrowser } from './browser.ts';

const browser = useBrowser();
const gateway = await demoGateway();

/** The text of an element. The editor uses no-break spaces, which are replaced by ordinary ones. */
async function shown(page: Page, place: string): Promise<string> {
  return (await page.locator(place).innerText()).replaceAll('\u00a0', ' ');
}

async function expectResponse(page: Page, text: string): Promise<void> {
  const look = async () => {
    const response = await shown(page, '.result-window');
    // For a moment after the tab is changed, GraphiQL still sends the name of the previous tab's operation.
    if (response.includes('Cannot infer operation')) await run(page);
    return response;
  };
  await expect.poll(look, { timeout: 30_000, interval: 300 }).toContain(text);
}

async function run(page: Page): Promise<void> {
  // The editor is loaded after the button.
  await page.locator('.graphiql-query-editor .CodeMirror-line').first().waitFor();
  await page.getByRole('button', { name: 'Execute query' }).click();
}

it('runs every example with the demo account, and receives events', async () => {
  const { page } = await browser.open(`${gateway.url}/graphql`);
  await expect.poll(() => page.title()).toBe('GraphiQL – Dovetail');
  const responses = [
    ['Devices', '"username": "demo"'],
    ['ActiveTemplate', '"name": "Beginner Program"'],
    ['LockHistory', '"name": "Weekend Lock"'],
    ['Activate', '"name": "Endurance"'],
    ['Follow', '"name": "Endurance"'],
  ] as const;
  for (const [tab, response] of responses) {
    await page.getByRole('tab', { name: tab }).getByText(tab).click();
    // GraphiQL takes the name of the operation from its editor a moment after the tab is shown.
    await page.waitForTimeout(500);
    await run(page);
    await expectResponse(page, response);
  }
  const activateFirst = 'mutation { activateTemplate(template: { databaseId: 1 }) { scheduleTypeChanged } }';
  await graphqlOnce(gateway, gateway.token, activateFirst);
  await expectResponse(page, '"name": "Beginner Program"');
  await page.getByRole('button', { name: 'Stop query' }).click();
});

const exampleTabs = ['Devices', 'ActiveTemplate', 'LockHistory', 'Activate', 'Follow'];

async function expectTabs(page: Page, tabs: readonly string[], open: string): Promise<void> {
  const names = () => page.locator('.graphiql-tab').allInnerTexts();
  await expect.poll(names, { timeout: 30_000 }).toEqual(tabs.map((name) => expect.stringContaining(name)));
  await expect.poll(() => page.getByRole('tab', { selected: true }).innerText()).toContain(open);
  await expect.poll(() => shown(page, '.graphiql-query-editor')).toContain(open);
}

/** Opens an address as soon as GraphiQL, which delays that, has stored which tab is open. */
async function reopen(page: Page, open: number, url: string): Promise<void> {
  const stored = () => page.evaluate(() => localStorage.getItem('graphiql:tabState'));
  await expect.poll(stored).toContain(`"activeTabIndex":${open}`);
  await page.goto(url);
}

it('restores its tabs, and opens a query from the address in a tab of its own beside them', async () => {
  const plain = `${gateway.url}/graphql`;
  const { page } = await browser.open(plain);
  await expectTabs(page, exampleTabs, 'Devices');
  await page.getByRole('tab', { name: 'LockHistory' }).getByText('LockHistory').click();
  await reopen(page, 2, plain);
  await expectTabs(page, exampleTabs, 'LockHistory');

  const urlOf = (query: string, variables?: string) =>
    `${plain}?${new URLSearchParams({ query, ...(variables && { variables }) })}`;
  const first = urlOf('query First($size: Int) { dttSessions(first: $size) { totalCount } }', '{"size":1}');
  await reopen(page, 2, first);
  await expectTabs(page, [...exampleTabs, 'First'], 'First');
  await reopen(page, 5, urlOf('query Second { viewer { username } }'));
  await expectTabs(page, [...exampleTabs, 'First', 'Second'], 'Second');
  await run(page);
  await expectResponse(page, '"username": "demo"');
  expect(await page.locator('.graphiql-editors').innerText()).not.toContain('size');
  await reopen(page, 6, first);
  await expectTabs(page, [...exampleTabs, 'First', 'Second'], 'First');
  await run(page);
  await expectResponse(page, '"totalCount"');
});

it('shows a response below the query on a telephone, as wide as the screen allows', async () => {
  const { page } = await browser.open(`${gateway.url}/graphql`, {
    viewport: { width: 390, height: 844 },
    isMobile: true,
  });
  await page.getByText("Sends the demo account's token").waitFor();
  const hint = () =>
    page.locator('.result-window').evaluate((pane) => getComputedStyle(pane, '::before').content);
  await expect.poll(hint).toContain('Run the query');
  await run(page);
  await expectResponse(page, '"username": "demo"');
  expect(await hint()).toBe('none');
  expect((await page.locator('.result-window').boundingBox())?.width).toBeGreaterThan(250);
  // The style of our pages does not reach what GraphiQL lays out by itself.
  await page.getByRole('button', { name: 'Open settings dialog' }).click();
  const dialog = page.getByRole('dialog');
  expect((await dialog.locator('.graphiql-dialog-close svg').boundingBox())?.width).toBeGreaterThan(8);
  const isCutOff = await dialog.evaluate(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth);
  expect(isCutOff).toBe(false);
});
