/** The console while something changes: in another tab, in the database, the gateway itself, or the token. */

import { expect, it } from 'vitest';
import { createToken, revokeToken } from '../../src/auth/tokens.ts';
import { setActive } from '../support/accounts.ts';
import { openBeside, openTestGateway } from '../support/gateway.ts';
import { gatewayBeside, gatewayWith } from '../support/setUp.ts';
import { useBrowser } from './browser.ts';
import { expectView, signIn } from './console.ts';

const browser = useBrowser();
const { gateway, alice } = await gatewayWith(['alice']);

/** Opens a view, signed in as alice. */
async function openSignedIn(path: string, title: string, token = alice.token) {
  const tab = await browser.open(gateway.url + path);
  await signIn(tab.page, token);
  await expectView(tab.page, { title, shows: /\w/ });
  return tab;
}

const activate = (index?: 0 | 1 | 2) => setActive(gateway.database.client, alice, index);

/** In milliseconds: until a tab has to show a change, on a very busy machine as well. It usually takes a fraction of a second. */
const timeout = 5_000;

it('shows a program that is activated in one tab as active in every tab, without a reload', async () => {
  await activate();
  const overview = await openSignedIn('/console', 'Overview');
  const programs = await openSignedIn('/console/programs', 'Programs');
  for (const { page } of [overview, programs])
    page.on('request', (request) => {
      if (request.isNavigationRequest()) throw new Error(`loaded ${request.url()}`);
    });
  await overview.page.getByText('No program is active').waitFor();
  const button = programs.page.getByRole('button', { name: 'Activate Program 1 of alice' });
  await button.click();
  const dialog = programs.page.getByRole('dialog');
  await dialog.getByText('No other program is active now').waitFor();
  await dialog.getByRole('button', { name: 'Activate', exact: true }).click();
  await overview.page.getByText('Program 1 of alice').waitFor({ timeout });
  await programs.page.getByRole('button', { name: 'Active now: Program 1 of alice' }).waitFor({ timeout });
  await dialog.waitFor({ state: 'detached' });

  // It is no longer shown as active in any tab after a change that comes from elsewhere.
  await activate(2);
  await overview.page.getByText('Program 2 of alice').waitFor({ timeout });
  await button.waitFor({ timeout });
});

it('restores the focus after a dialog, and activates nothing when the dialog is cancelled', async () => {
  await activate(0);
  const { page } = await openSignedIn('/console/programs', 'Programs');
  const trigger = page.getByRole('button', { name: 'Activate Program 1 of alice' });
  const dialog = page.getByRole('dialog', { name: 'Activate Program 1 of alice?' });
  for (const end of [() => page.keyboard.press('Escape'), () => dialog.getByText('Cancel').click()]) {
    await trigger.press('Enter');
    await dialog.waitFor();
    await end();
    await dialog.waitFor({ state: 'detached' });
    await expect.poll(() => trigger.evaluate((element) => element === document.activeElement)).toBe(true);
  }
  await page.getByRole('button', { name: 'Active now: Program 0 of alice' }).waitFor();
});

it('shows in the dialog why a program was not activated, and can try again', async () => {
  await activate();
  const { page } = await openSignedIn('/console/programs', 'Programs');
  await page.getByRole('button', { name: 'Activate Program 1 of alice' }).click();
  const dialog = page.getByRole('dialog');
  const confirm = dialog.getByRole('button', { name: 'Activate', exact: true });
  // As if the program had been deleted meanwhile.
  await page.route('**/graphql', (route) =>
    route.continue({
      postData:
        route
          .request()
          .postData()
          ?.replace(/("databaseId":)\d+/, '$1999') ?? '',
    }),
  );
  await confirm.click();
  await dialog.getByRole('alert').getByText('Template not found or not owned by user').waitFor();
  await page.unroute('**/graphql');
  await confirm.click();
  await page.getByRole('button', { name: 'Active now: Program 1 of alice' }).waitFor();
});

it('says that the gateway cannot be reached, reconnects when it runs again, and shows what has changed meanwhile', async () => {
  await activate();
  const settings = { RATE_LIMIT_ANONYMOUS: '1000000000' };
  const first = await openTestGateway(await openBeside(gateway.database), { settings });
  const { page } = await browser.open(`${first.url}/console`, {
    expected: /^WebSocket connection to .* failed/,
  });
  await signIn(page, alice.token);
  await page.getByText('No program is active').waitFor();
  // The scripts of the other views are loaded in advance; this is the last of them.
  await page.waitForFunction(() =>
    performance.getEntriesByType('resource').some(({ name }) => /\/settings-[^/]*\.js$/.test(name)),
  );
  const marker = await page.evaluate(() => Object.assign(globalThis, { isTheSame: true }).isTheSame);
  expect(marker).toBe(true);

  await first.close();
  const notice = page.getByText('The gateway cannot be reached');
  await notice.waitFor();
  // The page still shows the data that it had.
  await page.getByText('No program is active').waitFor();
  await activate(2);
  const port = Number(new URL(first.url).port);
  await gatewayBeside(gateway.database, { settings, port });
  await page.getByText('Program 2 of alice').waitFor();
  await notice.waitFor({ state: 'detached' });
  // It also receives later changes.
  await activate(0);
  await page.getByText('Program 0 of alice').waitFor({ timeout });
  expect(await page.evaluate(() => Reflect.get(globalThis, 'isTheSame'))).toBe(true);
});

it('shows what it had of a part that the gateway cannot read any more, and says why once', async () => {
  await activate(0);
  const { page } = await browser.open(`${gateway.url}/console`);
  let isAway = false;
  await page.routeWebSocket(/\/graphql$/, (socket) => {
    const server = socket.connectToServer();
    server.onMessage((text) => {
      const message = JSON.parse(String(text));
      const viewer = message.payload?.data?.viewer;
      if (isAway && viewer?.dttDevices) {
        const fields = ['activeDttTemplate', 'activeLockSession'];
        message.payload.errors = fields.map((field) => ({ message: 'It is away', path: ['viewer', field] }));
        for (const field of fields) viewer[field] = null;
      }
      socket.send(JSON.stringify(message));
    });
  });
  await page.reload();
  await signIn(page, alice.token);
  const program = page.getByRole('link', { name: 'Program 0 of alice' });
  await program.waitFor();
  isAway = true;
  // Another part changes.
  await gateway.database.client.user.update({ where: { id: alice.userId }, data: { league: 777 } });
  await page.getByText('777').waitFor({ timeout });
  expect(await page.getByRole('alert').allInnerTexts()).toEqual(['It is away']);
  expect(await program.count()).toBe(1);
});

it('asks for another token when its own is revoked, and says so', async () => {
  const { id, token } = await createToken(gateway.database.pool, 'alice', 'revoked');
  const { page } = await openSignedIn('/console/locks', 'Locks', token);
  await revokeToken(gateway.database.pool, id);
  await page.getByRole('alert').getByText('revoked').waitFor({ timeout });
  expect(await page.evaluate(() => sessionStorage.length)).toBe(0);
  // The form rejects it as well.
  await page.reload();
  await signIn(page, token);
  await page.getByRole('alert').getByText('revoked').waitFor({ timeout });
  await signIn(page, alice.token);
  await expectView(page, { title: 'Locks', shows: /\w/ });
});
