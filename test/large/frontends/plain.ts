/** A page without a framework: the subscriptions of docs/clients.md by `fetch`, or over a WebSocket. */

import { follow } from './generated/docs/app/src/follow.ts';
import { socket } from './generated/docs/app/src/live.ts';

interface Result {
  readonly data?: { viewer: { dttTemplates: { nodes: { name: string; isActive: boolean }[] } } } | null;
  readonly errors?: readonly { extensions?: { code?: unknown } }[];
}

const query = 'subscription { viewer { dttTemplates { nodes { name isActive } } } }';

function show({ data, errors }: Result) {
  for (const { name, isActive } of data?.viewer.dttTemplates.nodes ?? []) {
    const button = document.querySelector(`[title="${name}"]`) ?? document.createElement('button');
    button.textContent = isActive ? `✓ ${name}` : name;
    button.setAttribute('title', name);
    button.setAttribute('aria-pressed', String(isActive));
    document.body.append(button);
  }
  if (errors) showError(String(errors[0]?.extensions?.code));
}

function showError(text: string) {
  const alert = document.createElement('p');
  alert.role = 'alert';
  alert.textContent = text;
  document.body.append(alert);
}

if (import.meta.env.MODE === 'fetch') follow(query, show);
else
  socket.subscribe<Result['data']>(
    { query },
    {
      next: show,
      error: (error) => showError(error instanceof CloseEvent ? error.reason : String(error)),
      complete() {},
    },
  );
