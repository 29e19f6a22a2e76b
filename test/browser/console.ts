/** How the tests of the console come to its views, and when they are there. */

import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import type { ConsoleView } from './views.ts';

/** Signs in by pasting a token. */
export async function signIn(page: Page, token: string): Promise<void> {
  await page.getByLabel('API token').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

/** Signs in with the token that the form has at hand. */
export const signInToDemo = (page: Page): Promise<void> =>
  page.getByRole('button', { name: /demo account/ }).click();

/** In milliseconds: more than any view takes, on a busy machine as well. */
const timeout = 40_000;

/** Waits until a view shows what it has to show. */
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

/** How many pixels of the page stand out to the side, where one has to scroll for them. */
export const overhang = (page: Page): Promise<number> =>
  page.evaluate(() => {
    const { scrollWidth, clientWidth } = document.documentElement;
    return scrollWidth - clientWidth;
  });

/** How much of a page has moved under one's eyes since it was loaded (Cumulative Layout Shift): up to 0.1 is called good. */
export const shiftOf = (page: Page): Promise<number> =>
  page.evaluate(
    () =>
      new Promise<number>((resolve) => {
        new PerformanceObserver((list) =>
          resolve(
            list
              .getEntries()
              .filter((entry) => Reflect.get(entry, 'hadRecentInput') === false)
              .reduce((sum, entry) => sum + Number(Reflect.get(entry, 'value')), 0),
          ),
        ).observe({ type: 'layout-shift', buffered: true });
        // It is not told of none.
        setTimeout(() => resolve(0), 200);
      }),
  );
