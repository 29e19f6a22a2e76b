/** GraphiQL, with an example in each tab. It loads nothing from other servers. */

import { GraphiQL, type GraphiQLProps } from 'graphiql';
import { type ExecutionResult, getOperationAST } from 'graphql';
import { createElement } from 'react';
import { flushSync } from 'react-dom';
import { createRoot } from 'react-dom/client';
import { home } from '../console/src/paths.ts';
import { key } from '../console/src/session.ts';
import activate from '../src/graphql/examples/activate.graphql?raw';
import activeTemplate from '../src/graphql/examples/activeTemplate.graphql?raw';
import devices from '../src/graphql/examples/devices.graphql?raw';
import follow from '../src/graphql/examples/follow.graphql?raw';
import lockHistory from '../src/graphql/examples/lockHistory.graphql?raw';
import './style.css';

/** The tabs, in order. */
const examples = [devices, activeTemplate, lockHistory, activate, follow];

/** The text of a tab's headers where there is no token to send. */
const ownToken = `{
  "Authorization": "Bearer YOUR_API_TOKEN"
}
`;

/** Where the requests of GraphiQL go, with the token of the page unless its headers have another one. */
const createFetcher =
  (token: string | undefined): GraphiQLProps['fetcher'] =>
  (parameters, { headers, documentAST } = {}) => {
    const send = (accept: string, signal?: AbortSignal) =>
      fetch(`${home}graphql`, {
        method: 'POST',
        headers: {
          Accept: accept,
          'Content-Type': 'application/json',
          ...(token && { Authorization: `Bearer ${token}` }),
          ...headers,
        },
        body: JSON.stringify(parameters),
        ...(signal && { signal }),
      });
    const operation = documentAST && getOperationAST(documentAST, parameters.operationName);
    if (operation?.operation !== 'subscription')
      return send('application/graphql-response+json, application/json').then((response) => response.json());
    return {
      subscribe(observer) {
        if (typeof observer !== 'object') throw new TypeError('GraphiQL subscribes with an observer');
        const leaving = new AbortController();
        send('text/event-stream', leaving.signal)
          .then((response) => readEvents(response, observer.next))
          .then(observer.complete, (error) => leaving.signal.aborted || observer.error(error));
        return { unsubscribe: () => leaving.abort() };
      },
    };
  };

async function readEvents({ body }: Response, onResult: (result: ExecutionResult) => void): Promise<void> {
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (let read = await reader?.read(); read && !read.done; read = await reader?.read()) {
    const events = (text + read.value).split('\n\n');
    text = events.pop() ?? '';
    for (const event of events) {
      const [, data] = /^data: (.+)$/m.exec(event) ?? [];
      if (data) onResult(JSON.parse(data));
    }
  }
}

/** What the browser has stored; undefined where it stores nothing. */
function stored(storage: 'localStorage' | 'sessionStorage', key: string): string | undefined {
  try {
    return window[storage].getItem(key) ?? undefined;
  } catch {
    return undefined;
  }
}

type Tab = NonNullable<GraphiQLProps['defaultTabs']>[number];

/**
 * The tabs, and which of them is open: the stored one, or that of the query in the address, with its variables. Links of the console
 * and of the schema's reference have a query.
 *
 * GraphiQL selects a stored tab only if its query, variables and headers are given exactly, and adds a new tab otherwise,
 * even an empty one.
 */
function tabsAsOpened(
  headers: string,
): Pick<GraphiQLProps, 'query' | 'variables' | 'headers' | 'defaultTabs'> {
  const address = new URLSearchParams(location.search);
  const query = address.get('query') || undefined;
  const variables = address.get('variables') ?? undefined;
  const { tabs, activeTabIndex = 0 }: { tabs?: Tab[]; activeTabIndex?: number } = JSON.parse(
    stored('localStorage', 'graphiql:tabState') ?? '{}',
  );
  const defaultTabs = examples.map((example): Tab => ({ query: example, headers }));
  const tab = [tabs?.[activeTabIndex], ...(tabs ?? [])].find(
    (each) =>
      each &&
      (query === undefined ||
        (each.query === query && (variables === undefined || each.variables === variables))),
  );
  if (tab) return { query: tab.query ?? '', variables: tab.variables ?? '', headers: tab.headers ?? '' };
  if (query === undefined) return { defaultTabs };
  const asked = { query, variables: variables ?? '' };
  return { ...asked, defaultTabs: [{ ...asked, headers }, ...defaultTabs] };
}

/** @param sends whose token is sent; undefined where there is none to send. */
function show(root: HTMLElement, token: string | undefined, sends: string | undefined): void {
  const headers = token === undefined ? ownToken : '';
  const hasVariables = new URLSearchParams(location.search).has('variables');
  const props = {
    ...tabsAsOpened(headers),
    fetcher: createFetcher(token),
    defaultHeaders: headers,
    defaultEditorToolsVisibility: hasVariables ? 'variables' : token === undefined && 'headers',
  } as const;
  const graphiql = createRoot(root);
  graphiql.render(createElement(GraphiQL, props));
  // A theme that is chosen in GraphiQL's settings changes the class of the body, and any other the style of the page. GraphiQL adopts
  // that when it is forced for a moment; as long as it is, its settings have no choice.
  const { body, documentElement } = document;
  new MutationObserver(() => dispatchEvent(new Event('themechange'))).observe(body, {
    attributeFilter: ['class'],
  });
  new MutationObserver(() => {
    const chosen = documentElement.style.colorScheme;
    const forcedTheme = (['light', 'dark'] as const).find((theme) => theme === chosen) ?? 'system';
    flushSync(() => graphiql.render(createElement(GraphiQL, { ...props, forcedTheme })));
    graphiql.render(createElement(GraphiQL, props));
  }).observe(documentElement, { attributeFilter: ['style'] });
  if (sends === undefined) return;
  const hint = document.createElement('p');
  hint.className = 'hint';
  hint.textContent = `Sends ${sends}, unless Headers has another.`;
  document.querySelector('body > header')?.append(hint);
}

const root = document.getElementById('explorer');
// A user who is signed in to the console in the same tab of the browser comes first (`console/src/session.ts`).
const ofConsole = stored('sessionStorage', key);
const ofDemo = root?.dataset.demoToken || undefined;
if (root && ofConsole) show(root, ofConsole, "the console's token");
else if (root) show(root, ofDemo, ofDemo && "the demo account's token");
