/** What the gateway says in the page that the console runs in. */

function findRoot(): HTMLElement {
  const found = document.getElementById('console');
  if (!found) throw new Error('The page has no element with the id "console".');
  return found;
}

export const root = findRoot();

/** The token of the demo account, where the gateway may show it. */
export const demoToken = root.dataset.demoToken || undefined;

/** Whether there is a GraphiQL to open queries in. */
export const hasGraphiql = root.dataset.graphiql === 'on';

let isUsed = false;

// Not `navigator.userActivation`, which also what a script evaluates from outside may set. Screen readers only click.
for (const kind of ['pointerdown', 'keydown', 'click'])
  addEventListener(kind, () => (isUsed = true), { capture: true, once: true });

/** Whether somebody has done anything since the page was loaded. */
export const hasBeenUsed = (): boolean => isUsed;
