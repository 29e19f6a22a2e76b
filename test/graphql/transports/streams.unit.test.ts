/** How results are written for each media type, and which media type a client gets. */

import { addAbortSignal, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { type Ending, errorsOf, OperationFailed } from '../../../src/graphql/transports/endings.ts';
import { plain, type StreamType, streamOf, streamTypeFor } from '../../../src/graphql/transports/streams.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const events = 'text/event-stream';
const multipart = 'multipart/mixed';

/** Results of which each is a text, and then their end. */
async function* resultsOf(each: readonly string[], ending?: Ending) {
  yield* each;
  if (ending) throw new OperationFailed(errorsOf(ending));
}

async function written(type: StreamType, results: AsyncIterator<string>): Promise<string> {
  const { stream, signal } = await streamOf(type, results);
  const body = Readable.fromWeb(stream);
  return text(signal ? addAbortSignal(signal, body) : body);
}

const apollo = 'multipart/mixed;boundary=graphql;subscriptionSpec=1.0';
it.each([
  [undefined, events],
  ['*/*', events],
  ['Text/Event-Stream; charset=utf-8', events],
  ['multipart/mixed; boundary="graphql"; subscriptionSpec="1.0", application/json', multipart],
  [`${apollo}, text/event-stream`, multipart],
  [`text/event-stream, ${apollo}`, events],
  [`text/event-stream;q=0.5, ${apollo}`, multipart],
  ['multipart/mixed', undefined],
  ['text/event-stream;q=0', undefined],
])('a client that accepts %s gets the media type that it prefers, if there is one', (accept, type) => {
  expect(streamTypeFor(accept)).toBe(type);
});

it.each([
  [events, ':\n\nevent: next\ndata: {"n":1}\n\nevent: next\ndata: {"n":2}\n\nevent: complete\ndata:\n\n'],
  [
    multipart,
    `\r\n--graphql${[1, 2].map((n) => `\r\nContent-Type: application/json\r\n\r\n{"payload":{"n":${n}}}\r\n--graphql`).join('')}--\r\n`,
  ],
  [plain, '{"n":1}{"n":2}'],
] as const)('results are written as the protocol of %s says, with their end', async (type, body) => {
  expect(await written(type, resultsOf(['{"n":1}', '{"n":2}']))).toBe(body);
});

const partOf = (code: string) =>
  new RegExp(
    `\\{"payload":null,"errors":\\[\\{"message":"[^"]+","extensions":\\{"code":"${code}"\\}\\}\\]\\}\\r\\n--graphql--\\r\\n$`,
  );
const lastEvent =
  /event: next\ndata: \{"errors":\[\{.*"code":"UNAUTHENTICATED"\}\}\]\}\n\nevent: complete\ndata:\n\n$/;

it.each<[type: StreamType, ending: Ending, RegExp | string]>([
  [events, 'revoked', lastEvent],
  [events, 'expired', lastEvent],
  [events, 'closing', 'The gateway closes'],
  [events, 'failed', 'Internal server error'],
  [multipart, 'revoked', partOf('UNAUTHENTICATED')],
  [multipart, 'closing', partOf('SERVICE_UNAVAILABLE')],
  [multipart, 'failed', partOf('INTERNAL_SERVER_ERROR')],
  [plain, 'revoked', 'Unauthorized'],
])('what ends for a reason that is not its own does not look complete: %s, %s', async (type, ending, end) => {
  const reading = written(type, resultsOf(['{"n":1}'], ending));
  // A string is the error with which the stream breaks off.
  if (typeof end === 'string')
    expect(await reading.catch(({ cause, message }) => cause?.message ?? message)).toContain(end);
  else expect(await reading).toMatch(end);
  // A timer would keep the process of a closed gateway alive.
  await vi.advanceTimersByTimeAsync(1);
  expect(vi.getTimerCount()).toBe(0);
});

it.each([
  [events, ':\n\n'],
  [multipart, '\r\nContent-Type: application/json\r\n\r\n{}\r\n--graphql'],
] as const)('%s has heartbeats while there are no results, until the client leaves', async (type, beat) => {
  const never = {
    next: () => new Promise<never>(() => {}),
    return: vi.fn(async () => ({ done: true, value: undefined }) as const),
  };
  const { stream } = await streamOf(type, never);
  const reader = stream.getReader();
  await reader.read();
  const next = reader.read();
  await vi.advanceTimersByTimeAsync(12_000);
  expect(Buffer.from((await next).value ?? '').toString()).toBe(beat);
  await reader.cancel();
  await vi.waitFor(() => expect([never.return.mock.calls.length, vi.getTimerCount()]).toEqual([1, 0]));
});

it('an event stream that has broken off is forgotten', async () => {
  vi.useRealTimers();
  setFlagsFromString('--expose-gc');
  async function breakOff() {
    const results = resultsOf([], 'failed');
    await written(events, results).catch(() => {});
    return new WeakRef(results);
  }
  const left = await breakOff();
  await vi.waitFor(() => {
    runInNewContext('gc')();
    // An assertion about the results themselves would keep them.
    expect(left.deref() === undefined).toBe(true);
  });
});
