/** The console with the demo account, in a browser that opens it for the first time: every view, and the form for signing in. */

import { expect, it } from 'vitest';
import { demoGateway } from '../support/setUp.ts';
import { expectAccessible } from './axe.ts';
import { type Tab, type TabOptions, useBrowser } from './browser.ts';
import { expectView, openAccountMenu, signIn, signInToDemo } from './console.ts';
import { type ConsoleView, views } from './views.ts';

const browser = useBrowser();
const gateway = await demoGateway();

/** Opens a view, signed in to the demo account. */
async function openView({ path, ...view }: ConsoleView, options?: TabOptions): Promise<Tab> {
  const tab = await browser.open(gateway.url + path, options);
  await signInToDemo(tab.page);
  await expectView(tab.page, view);
  return tab;
}

it('shows in the sign-in form why a token is rejected, stores a pasted token for the tab alone, and deletes it on sign-out', async () => {
  const { page } = await browser.open(`${gateway.url}/console/locks`);
  const urls: string[] = [];
  page.on('request', (request) => urls.push(request.url()));
  page.on('websocket', (socket) => urls.push(socket.url()));
  const stored = () =>
    page.evaluate(async () => ({
      session: Object.values(sessionStorage),
      others: [...Object.keys(localStorage), document.cookie, ...(await caches.keys())].join(''),
      databases: (await indexedDB.databases()).length,
    }));

  const wrong = `dvt_${'x'.repeat(43)}`;
  await signIn(page, wrong);
  await page.getByRole('alert').getByText('That token is unknown').waitFor();
  expect(await stored()).toEqual({ session: [], others: '', databases: 0 });

  await signIn(page, 'abc def');
  const field = page.getByLabel('API token');
  expect(await field.evaluate((input: HTMLInputElement) => input.validity.patternMismatch)).toBe(true);

  // Pasted as it is in a header, with the scheme before it.
  await signIn(page, ` Bearer ${gateway.token}\n`);
  await expectView(page, { title: 'Locks', shows: 'Weekend Lock' });
  expect(await stored()).toEqual({ session: [gateway.token], others: '', databases: 0 });
  await page.reload();
  await expectView(page, { title: 'Locks', shows: 'Weekend Lock' });
  // Another tab does not have the token.
  const other = await page.context().newPage();
  await other.goto(page.url());
  await other.getByLabel('API token').waitFor();
  await other.close();

  await page.getByRole('link', { name: 'Programs' }).click();
  await expectView(page, { title: 'Programs', shows: 'Beginner Program' });
  urls.push(page.url());
  await (await openAccountMenu(page)).getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('API token').waitFor();
  expect(await page.getByRole('alert').count()).toBe(0);
  expect(await stored()).toEqual({ session: [], others: '', databases: 0 });
  await page.reload();
  await page.getByLabel('API token').waitFor();
  expect(urls.filter((url) => url.includes(gateway.token) || url.includes(wrong))).toEqual([]);
  expect(urls.length).toBeGreaterThan(10);
});

it('has a sign-in form that is accessible, and no wider than the window', async () => {
  const { page } = await browser.open(`${gateway.url}/console`);
  await signIn(page, 'none');
  await page.getByRole('alert').waitFor();
  await expectAccessible(page, 'console-sign-in');
});

it.each(Object.entries<ConsoleView>(views))(
  'renders %s accessibly, with the data of the demo account',
  async (name, view) => {
    const { page } = await openView(view);
    await page.setViewportSize({ width: 1400, height: 1000 });
    expect(await page.title()).toBe(`${view.title} – Dovetail`);
    // Each click opens one, so that fewer are left.
    const closed = page.locator('main details:not([open]) > summary');
    while ((await closed.count()) > 0) await closed.first().click();
    await page.locator('.sources pre').first().waitFor();
    await expectAccessible(page, `console-${name}`);
  },
);

it('has an account menu that says who is signed in, and opens and closes by keyboard alone', async () => {
  const { page } = await openView(views.history);
  const button = page.getByRole('button', { name: 'Account demo' });
  await button.press('Enter');
  const menu = page.locator('.account-menu');
  await menu.getByText('Explorer · Tier ultra').waitFor();
  const links = await menu.getByRole('link').allInnerTexts();
  expect(links).toEqual(['GraphiQL', 'Schema', 'REST reference']);
  await expectAccessible(page, 'console-menu');
  await page.keyboard.press('Escape');
  await menu.waitFor({ state: 'hidden' });
  await expect.poll(() => button.evaluate((element) => element === document.activeElement)).toBe(true);
});

it('begins with a link that skips the navigation, and focuses the heading of a view that is opened', async () => {
  const { page } = await openView(views.overview);
  await page.reload();
  await expectView(page, views.overview);
  const focused = () =>
    page.evaluate(() => `${document.activeElement?.localName} ${document.activeElement?.textContent}`);
  await page.keyboard.press('Tab');
  expect(await focused()).toBe('a Skip to the content');
  await page.keyboard.press('Enter');
  await page.keyboard.press('Tab');
  const inMain = await page.evaluate(() => document.activeElement?.closest('main') !== null);
  expect(inMain).toBe(true);
  expect(page.url()).toBe(`${gateway.url}/console#content`);
  await page.getByRole('link', { name: 'Locks' }).press('Enter');
  await expectView(page, { title: 'Locks', shows: 'Weekend Lock' });
  await expect.poll(focused).toBe('h1 Locks');
  await page.goBack();
  await expectView(page, views.overview);
});

it('opens the query of a view in GraphiQL, where it returns what the view shows, with the token of the tab', async () => {
  const { page } = await openView(views.programs, { expected: /401 \(Unauthorized\)/ });
  await page.locator('.sources summary').click();
  await page.getByRole('link', { name: 'Open in GraphiQL' }).first().click();
  await page.locator('.graphiql-query-editor').getByText('Programs').first().waitFor();
  await page.getByRole('button', { name: 'Execute query' }).click();
  await page.locator('.result-window').getByText('"Intervals"').first().waitFor();
  expect(await page.locator('.graphiql-tab').first().innerText()).toContain('Programs');

  // It sends the token with which this tab is signed in, not that of the demo account.
  await page.evaluate(() => sessionStorage.setItem('dovetail-token /', 'of-somebody-else'));
  await page.reload();
  const [request] = await Promise.all([
    page.waitForRequest((each) => each.method() === 'POST'),
    page.getByRole('button', { name: 'Execute query' }).click(),
  ]);
  expect(request.headers().authorization).toBe('Bearer of-somebody-else');
});

it('keeps the text of the search field while it searches, and when the user goes back', async () => {
  const { page } = await openView(views.programs);
  const field = page.getByLabel('Search by name');
  await field.pressSequentially('Beginner ');
  await page.waitForURL(/search=Beginner$/);
  await field.pressSequentially('Program');
  await page.waitForURL(/search=Beginner(\+|%20)Program$/);
  await page.getByRole('main').getByRole('link', { name: 'Beginner Program' }).first().click();
  await page.goBack();
  await expect.poll(() => field.inputValue()).toBe('Beginner Program');
});

it('says that From is after To without applying it, and returns from a session to the chosen filters', async () => {
  const { page } = await openView(views.history);
  await page.getByLabel('Result').selectOption('Passed');
  const { href } = new URL(page.url());
  await page.getByLabel('From').fill('2999-01-01');
  await page.getByText('From is after To.').waitFor();
  expect(page.url()).toBe(href);
  expect(await page.getByLabel('To', { exact: true }).inputValue()).not.toBe('');
  await page.getByRole('region', { name: 'Sessions' }).getByRole('link').first().click();
  await page.getByRole('link', { name: 'All sessions' }).click();
  await expectView(page, views.history);
  expect(page.url()).toBe(href);
});
