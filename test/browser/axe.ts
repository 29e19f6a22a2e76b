/** The violations of accessibility that axe finds on a page. */

import axe from 'axe-core';
import type { Page } from 'playwright-core';

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
