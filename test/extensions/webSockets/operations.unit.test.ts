/** The operations of a WebSocket in a fake pipeline. */

import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { ReadableStream } from 'node:stream/web';
import { expect, it, vi } from 'vitest';
import type { UpgradeParts } from '../../../src/extensionPoints.ts';
import { createOperations } from '../../../src/extensions/webSockets/operations.ts';
import { jsonResponse, type StreamedResponse } from '../../../src/http/response.ts';
import { nobodyListens } from '../../support/exchanges.ts';

/** Runs an operation whose response comes from the test. */
function open() {
  const responded = vi.fn();
  let respond = (_: StreamedResponse) => {};
  const parts = {
    listener: nobodyListens,
    respond: () =>
      new Promise((settle) => {
        respond = settle;
      }),
    responded,
  } as unknown as UpgradeParts;
  const running = createOperations(parts).run(
    new IncomingMessage(new Socket()),
    { id: '1', authorization: undefined },
    {},
  );
  const ended = vi.fn();
  const subscription = { status: 200, headers: {}, stream: new ReadableStream(), ended };
  return { ...running, responded, ended, subscribe: () => respond(subscription) };
}

const settled = () => new Promise((settle) => setImmediate(settle));

it('a subscription has no deadline from its first response on', async () => {
  const { exchange, response, responded, subscribe } = open();
  await settled();
  expect(responded).not.toHaveBeenCalled();
  subscribe();
  expect(await response).toMatchObject({ status: 200 });
  expect(responded).toHaveBeenCalledExactlyOnceWith(exchange);
});

it('a subscription that begins only after its deadline does not count as open', async () => {
  const { exchange, response, ended, subscribe } = open();
  exchange.message?.cutShort(jsonResponse(500, ''));
  expect(await response).toMatchObject({ status: 500 });
  await settled();
  subscribe();
  await vi.waitFor(() => expect(ended).toHaveBeenCalledOnce());
});
