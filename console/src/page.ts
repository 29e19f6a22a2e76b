/** What the gateway has written into the page, and whether the user has done anything on it. */

function findRoot(): HTMLElement {
  const found = document.getElementById('console');
  if (!found) throw new Error('The page has no element with the id "console".');
  return found;
}

export const root = findRoot();

/** The token of the demo account; undefined unless the gateway may show it. */
export const readDemoToken = (): string | undefined => root.dataset.demoToken || undefined;

/** Must be called when it is revoked: the gateway has it in no page any more. */
export const forgetDemoToken = (): boolean => delete root.dataset.demoToken;

/** Whether the gateway serves GraphiQL, in which queries can be opened. */
export const hasGraphiql = root.dataset.graphiql === 'on';

/** Whether the gateway serves the references of both APIs. */
export const hasReferences = root.dataset.references === 'on';

let hasInteracted = false;

// `navigator.userActivation` would not do: a script that a debugger evaluates may set it too. Screen readers send clicks alone.
for (const kind of ['pointerdown', 'keydown', 'click'])
  addEventListener(kind, () => (hasInteracted = true), { capture: true, once: true });

/** Whether the user has clicked or pressed a key since the page was loaded. */
export const hasUserInteracted = (): boolean => hasInteracted;
