/** How results are written for each media type, and which media type a client gets. */

import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import {
  type Ending,
  type Framing,
  framingFor,
  multipart,
  plain,
  type Results,
  serverSentEvents,
  streamOf,
} from '../../../src/graphql/transports/framing.ts';

const open = new AbortController().signal;

/** Results of which each is a text, and then their ending, or an error. */
function resultsOf(each: readonly string[], ending?: Ending | Error): Results {
  const left = [...each];
  return {
    async next() {
      const value = left.shift();
      if (value !== undefined) return { done: false, value };
      if (ending instanceof Error) throw ending;
      return { done: true, value: ending };
    },
    stop: vi.fn(),
  };
}

const written = (framing: Framing, results: Results, { report = vi.fn(), closing = open } = {}) =>
  text(streamOf(results, { framing, heartbeat: 1_000, report, closing }));

const apollo = 'multipart/mixed;boundary=graphql;subscriptionSpec=1.0';
it.each([
  [undefined, serverSentEvents],
  ['*/*', serverSentEvents],
  ['Text/Event-Stream; charset=utf-8', serverSentEvents],
  ['multipart/mixed; boundary="graphql"; subscriptionSpec="1.0", application/json', multipart],
  [`${apollo}, text/event-stream`, multipart],
  [`text/event-stream, ${apollo}`, serverSentEvents],
  [`text/event-stream;q=0.5, ${apollo}`, multipart],
  ['multipart/mixed', undefined],
  ['text/event-stream;q=0', undefined],
])('a client that accepts %s gets the media type that it prefers, if there is one', (accept, framing) => {
  expect(framingFor(accept)).toBe(framing);
});

it.each([
  [
    serverSentEvents,
    ':\n\nevent: next\ndata: {"n":1}\n\nevent: next\ndata: {"n":2}\n\nevent: complete\ndata:\n\n',
  ],
  [
    multipart,
    `\r\n--graphql${[1, 2].map((n) => `\r\nContent-Type: application/json\r\n\r\n{"payload":{"n":${n}}}\r\n--graphql`).join('')}--\r\n`,
  ],
  [plain, '{"n":1}{"n":2}'],
])('results are written as the protocol says, with their end', async (framing, body) => {
  expect(await written(framing, resultsOf(['{"n":1}', '{"n":2}']))).toBe(body);
});

const partOf = (code: string) =>
  new RegExp(
    `\\{"payload":null,"errors":\\[\\{"message":"[^"]+","extensions":\\{"code":"${code}"\\}\\}\\]\\}\\r\\n--graphql--\\r\\n$`,
  );
const lastEvent =
  /event: next\ndata: \{"errors":\[\{.*"code":"UNAUTHENTICATED"\}\}\]\}\n\nevent: complete\ndata:\n\n$/;
const closed = AbortSignal.abort();

it.each<
  [what: string, framing: Framing, ending: Ending | Error | undefined, isClosing: boolean, RegExp | string]
>([
  ['an event stream when the token ends', serverSentEvents, 'revoked', false, lastEvent],
  ['an event stream when the gateway closes', serverSentEvents, undefined, true, 'The gateway closes'],
  ['an event stream after a failure', serverSentEvents, new Error('secret'), false, 'Internal server error'],
  ['a multipart stream when the token ends', multipart, 'revoked', false, partOf('UNAUTHENTICATED')],
  ['a multipart stream when the gateway closes', multipart, undefined, true, partOf('SERVICE_UNAVAILABLE')],
  [
    'a multipart stream after a failure',
    multipart,
    new Error('secret'),
    false,
    partOf('INTERNAL_SERVER_ERROR'),
  ],
  ['plain results when the token ends', plain, 'revoked', false, 'Unauthorized'],
])(
  'what ends for a reason that is not its own does not look complete: %s',
  async (_, framing, ending, isClosing, end) => {
    const report = vi.fn();
    const results = resultsOf(['{"n":1}'], ending);
    const reading = written(framing, results, { report, closing: isClosing ? closed : open });
    // A string is the error with which the stream breaks off.
    if (typeof end === 'string')
      await expect(reading).rejects.toMatchObject({
        name: 'OperationFailed',
        message: expect.stringContaining(end),
      });
    else expect(await reading).toMatch(end);
    if (isClosing) expect(results.stop).toHaveBeenCalled();
    expect(report.mock.calls).toEqual(ending instanceof Error ? [[ending]] : []);
  },
);

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it.each([
  [serverSentEvents, ':\n\n'],
  [multipart, '\r\nContent-Type: application/json\r\n\r\n{}\r\n--graphql'],
])('while there are no results, a heartbeat is sent until the client disconnects', async (framing, beat) => {
  const never: Results = { next: () => new Promise(() => {}), stop: vi.fn() };
  const reader = streamOf(never, { framing, heartbeat: 1_000, report() {}, closing: open }).getReader();
  await reader.read();
  const next = reader.read();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(new TextDecoder().decode((await next).value)).toBe(beat);
  await reader.cancel();
  expect(never.stop).toHaveBeenCalledOnce();
  expect(vi.getTimerCount()).toBe(0);
});
