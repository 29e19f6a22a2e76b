/** Whether a page is accessible, by axe, and no wider than its window. */

import axe from 'axe-core';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { saveScreenshot } from './browser.ts';
import { overhang } from './console.ts';

/** The levels of WCAG that the console promises, and the best practices of axe. */
const runOnly = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

/** Rules that axe runs only if they are enabled. */
const rules = { 'target-size': { enabled: true } };

/**
 * One line for each element that violates a rule: the rule, the element, and why.
 * @param others selects the parts of the page that are not ours.
 */
export async function violationsOf(page: Page, others = 'none'): Promise<string[]> {
  // The content security policy of the page forbids other scripts, so axe is not added to the page as a script element.
  await page.evaluate(`globalThis.axe ?? (() => {${axe.source}})()`);
  const { violations } = await page.evaluate<axe.AxeResults>(
    `axe.run({ include: document, exclude: [${JSON.stringify(others)}] }, ${JSON.stringify({ runOnly, rules, resultTypes: ['violations'] })})`,
  );
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, any, all, none }) =>
      [id, html.slice(0, 160), ...[...any, ...all, ...none].map(({ message }) => message)].join(': '),
    ),
  );
}

/** Each width with one of the colour schemes: axe needs a second for each window. */
const windows = [
  { width: 1200, colorScheme: 'light' },
  { width: 360, colorScheme: 'dark' },
] as const;

/**
 * Expects that the page is accessible and no wider than the window, on a desktop by day and on a telephone by night.
 * @param others as for `violationsOf`.
 */
export async function expectAccessible(page: Page, name: string, others?: string): Promise<void> {
  const problems: string[] = [];
  for (const { width, colorScheme } of windows) {
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await saveScreenshot(page, `${name}-${width}-${colorScheme}`);
    const found = await violationsOf(page, others);
    const pixels = await overhang(page);
    if (pixels > 0) found.push(`${pixels} pixels wider than the window`);
    problems.push(...found.map((problem) => `${name}, ${width}, ${colorScheme}: ${problem}`));
  }
  expect(problems).toEqual([]);
}
