/** What axe finds wrong with a page. */

import axe from 'axe-core';
import type { Page } from 'playwright-core';

/** The levels of WCAG that the console promises, and what axe holds to be good practice beside them. */
const runOnly = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

/** Rules that are not run unless they are asked for. */
const rules = { 'target-size': { enabled: true } };

/** One line for each element that breaks a rule: the rule, and the element. */
export async function violationsOf(page: Page): Promise<string[]> {
  // The page's own policy forbids scripts of others, so this is no script of the page.
  await page.evaluate(`globalThis.axe ?? (() => {${axe.source}})()`);
  const { violations } = await page.evaluate<axe.AxeResults>(
    `axe.run(document, ${JSON.stringify({ runOnly, rules, resultTypes: ['violations'] })})`,
  );
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, any, all, none }) =>
      [id, html.slice(0, 160), ...[...any, ...all, ...none].map(({ message }) => message)].join(': '),
    ),
  );
}
