/** How the tests of the console sign in, and wait until a view is loaded. */

import type { Locator, Page } from 'playwright-core';
import { expect } from 'vitest';
import type { ConsoleView } from './views.ts';

/** Signs in by pasting a token. */
export async function signIn(page: Page, token: string): Promise<void> {
  await page.getByLabel('API token').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

/** Signs in with the button for the demo account. */
export const signInToDemo = (page: Page): Promise<void> =>
  page.getByRole('button', { name: /demo account/ }).click();

/** Opens the account menu. @returns the menu. */
export async function openAccountMenu(page: Page): Promise<Locator> {
  await page.getByRole('button', { name: /^Account/ }).click();
  return page.locator('.account-menu');
}

/** In milliseconds: more than any view needs, even on a busy machine. */
const timeout = 40_000;

/** Waits until a view shows its heading and this text, and is no longer loading. */
export async function expectView(page: Page, { title, shows }: Omit<ConsoleView, 'path'>): Promise<void> {
  await page.getByRole('heading', { level: 1, name: title }).waitFor({ timeout });
  await page.getByRole('main').getByText(shows).filter({ visible: true }).first().waitFor({ timeout });
  const loading = page.getByText('Loading…').filter({ visible: true });
  await loading
    .first()
    .waitFor({ state: 'hidden', timeout })
    .catch(async () => {
      throw new Error(`${title} is not loaded: ${await page.getByRole('main').innerText()}`);
    });
  expect(await loading.count()).toBe(0);
}

/** How many pixels the page is wider than its window, so that the user has to scroll sideways. */
export const overhang = (page: Page): Promise<number> =>
  page.evaluate(() => {
    const { scrollWidth, clientWidth } = document.documentElement;
    return scrollWidth - clientWidth;
  });
