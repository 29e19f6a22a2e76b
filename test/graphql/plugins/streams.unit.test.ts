/** How results are written for each media type, and which media type a client gets. */

import { addAbortSignal, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { ReadableStream as NodeReadableStream } from 'node:stream/web';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createSchema, createYoga, mapAsyncIterator } from 'graphql-yoga';
import { beforeEach, expect, it, type Mock, vi } from 'vitest';
import type { GatewayPlugin, RequestContext } from '../../../src/graphql/context.ts';
import { acceptedBy, type StreamType, type WholeType } from '../../../src/graphql/overHttp.ts';
import { judge } from '../../../src/graphql/plugins/liveQueries.ts';
import { useStreams } from '../../../src/graphql/plugins/streams.ts';
import { jsonResponse } from '../../../src/http/response.ts';
import { type Ending, errorsOf, OperationFailed } from '../../../src/schema/liveReads.ts';

beforeEach(() => void vi.useFakeTimers());

const events = 'text/event-stream';
const multipart = 'multipart/mixed';

/** Results of which each is a text, and then their end. */
async function* resultsOf(each: readonly string[], ending?: Ending) {
  yield* each;
  if (ending) throw new OperationFailed(errorsOf(ending));
}

/** The body that Yoga sends for results, and the signal to break off. */
async function open(type: StreamType, results: AsyncIterable<string>) {
  const broken = new AbortController();
  const given: GatewayPlugin = {
    // The results of a subscription are texts already.
    onParams: ({ setParamsHandler }) =>
      setParamsHandler(() => mapAsyncIterator(results, (result) => ({ stringify: () => result }) as object)),
  };
  const yoga = createYoga<RequestContext>({
    schema: createSchema({ typeDefs: 'type Query { n: Int }' }),
    plugins: [given, useStreams()],
    fetchAPI: { Response, ReadableStream },
    logging: false,
  });
  const accepted = { whole: undefined, stream: type };
  const request = new Request('http://gateway/graphql?query={n}', { headers: { accept: type } });
  // The plugin reads nothing else of the context.
  const { body } = await yoga.fetch(request, { accepted, broken } as unknown as RequestContext);
  return { stream: body as NodeReadableStream, signal: broken.signal };
}

async function written(type: StreamType, results: AsyncIterable<string>): Promise<string> {
  const { stream, signal } = await open(type, results);
  return text(addAbortSignal(signal, Readable.fromWeb(stream)));
}

const [json, graphqlJson] = ['application/json', 'application/graphql-response+json'] as const;
const apollo = 'multipart/mixed;boundary=graphql;subscriptionSpec=1.0';
it.each<[accept: string | undefined, whole: WholeType | undefined, stream: StreamType | undefined]>([
  [undefined, json, events],
  ['*/*', json, events],
  ['text/html, */*;q=0.1', json, events],
  [`${graphqlJson}, ${json};q=0.9`, graphqlJson, undefined],
  [`${graphqlJson};q=0, application/*;q=0.5, ${events}`, json, events],
  [`${json}; charset=iso-8859-1, ${graphqlJson}`, graphqlJson, undefined],
  ['Text/Event-Stream; charset=utf-8', undefined, events],
  [`multipart/mixed; boundary="graphql"; subscriptionSpec="1.0", ${json}`, json, multipart],
  [`${apollo}, text/event-stream`, undefined, multipart],
  [`text/event-stream, ${apollo}`, undefined, events],
  [`text/event-stream;q=0.5, ${apollo}`, undefined, multipart],
  ['multipart/mixed;subscriptionSpec=1.1', undefined, undefined],
  ['multipart/mixed', undefined, undefined],
  ['text/event-stream;q=0', undefined, undefined],
])('of the media types that %s accepts, the preferred one of each kind is used', (accept, whole, stream) => {
  for (let time = 0; time < 2; time++) expect(acceptedBy(accept)).toEqual({ whole, stream });
});

it.each([
  ['INTERNAL_SERVER_ERROR', true, false],
  ['SERVICE_UNAVAILABLE', true, false],
  ['BAD_USER_INPUT', false, true],
  ['NOT_FOUND', false, false],
])('after %s a subscription tries again (%s) or ends (%s)', (errorCode, hasFailed, isLast) => {
  const errors = ['FORBIDDEN', errorCode].map((code) => ({ message: code, extensions: { code } }));
  const response = jsonResponse(200, JSON.stringify({ errors }));
  expect(judge({ ...response, errorCode })).toEqual({ hasFailed, isLast });
});

it.each([
  [events, ':\n\nevent: next\ndata: {"n":1}\n\nevent: next\ndata: {"n":2}\n\nevent: complete\ndata:\n\n'],
  [
    multipart,
    `\r\n--graphql${[1, 2].map((n) => `\r\nContent-Type: application/json\r\n\r\n{"payload":{"n":${n}}}\r\n--graphql`).join('')}--\r\n`,
  ],
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
  const never: AsyncIterableIterator<string> & { return: Mock } = {
    next: () => new Promise<never>(() => {}),
    return: vi.fn(async () => ({ done: true, value: undefined }) as const),
    [Symbol.asyncIterator]: () => never,
  };
  const { stream } = await open(type, never);
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
