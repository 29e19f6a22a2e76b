/** How results are written for each media type, and which media type a client gets. */

import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  type Framing,
  framingFor,
  multipart,
  plain,
  type Reason,
  serverSentEvents,
  streamOf,
} from '../../../src/graphql/transports/framing.ts';
import { OperationFailed } from '../../../src/graphql/transports/operations.ts';

interface Result {
  stringify(): string;
}

async function* results(...each: (object | Error)[]): AsyncGenerator<Result> {
  for (const result of each) {
    if (result instanceof Error) throw result;
    yield { stringify: () => JSON.stringify(result) };
  }
}

const open = new AbortController().signal;

const written = (framing: Framing, given: AsyncIterable<Result>, reason?: Reason, report = () => {}) =>
  text(streamOf(given, { framing, heartbeat: 1_000, reason: async () => reason, report, closing: open }));

describe('a client', () => {
  const apollo = 'multipart/mixed;boundary=graphql;subscriptionSpec=1.0';
  it.each([
    [undefined, serverSentEvents],
    ['*/*', serverSentEvents],
    ['text/event-stream', serverSentEvents],
    ['Text/Event-Stream; charset=utf-8', serverSentEvents],
    [`${apollo},application/json`, multipart],
    ['multipart/mixed; boundary="graphql"; subscriptionSpec="1.0", application/json', multipart],
    [
      'application/graphql-response+json, application/json, text/event-stream, multipart/mixed',
      serverSentEvents,
    ],
    [`${apollo}, text/event-stream`, multipart],
    [`text/event-stream, ${apollo}`, serverSentEvents],
    [`text/event-stream;q=0.5, ${apollo}`, multipart],
    [`text/event-stream;q=0, */*`, serverSentEvents],
    ['multipart/mixed', undefined],
    ['application/json', undefined],
    ['text/event-stream;q=0', undefined],
  ])('that accepts %s gets the media type that it prefers, if there is one', (accept, framing) => {
    expect(framingFor(accept)).toBe(framing);
  });
});

describe('results', () => {
  const one = { data: { number: 1 } };

  it('are written as events, with one more at their end', async () => {
    expect(await written(serverSentEvents, results(one))).toBe(
      ':\n\nevent: next\ndata: {"data":{"number":1}}\n\nevent: complete\ndata:\n\n',
    );
  });

  it("are written as parts of Apollo's multipart protocol, each followed by the boundary", async () => {
    expect(await written(multipart, results(one, one))).toBe(
      '\r\n--graphql' +
        '\r\nContent-Type: application/json\r\n\r\n{"payload":{"data":{"number":1}}}\r\n--graphql'.repeat(2) +
        '--\r\n',
    );
  });

  it('end with an error when the token is revoked or an error is thrown, which is masked and reported', async () => {
    const report = vi.fn();
    const revoked = await written(multipart, results(one), 'revoked');
    expect(revoked).toContain(
      '{"payload":null,"errors":[{"message":"Unauthorized: the token is unknown or revoked","extensions":{"code":"UNAUTHENTICATED"}}]}\r\n--graphql--',
    );
    expect(await written(serverSentEvents, results(one), 'revoked')).toMatch(
      /event: next\ndata: \{"errors":\[\{"message":"Unauthorized: the token is unknown or revoked","extensions":\{"code":"UNAUTHENTICATED"\}\}\]\}\n\nevent: complete\ndata:\n\n$/,
    );
    const failed = await written(multipart, results(one, new Error('secret')), undefined, report);
    expect(failed).toContain('{"payload":null,"errors":[{"message":"Internal server error",');
    expect(failed).not.toContain('secret');
    expect(report).toHaveBeenCalledWith(new Error('secret'));
  });

  it('abort an event stream when an error is thrown, and plain results with the errors to send', async () => {
    await expect(written(serverSentEvents, results(new Error('failed')))).rejects.toThrow();
    for (const [given, reason, code] of [
      [results(new Error('failed')), undefined, 'INTERNAL_SERVER_ERROR'],
      [results(one), 'revoked', 'UNAUTHENTICATED'],
    ] as const) {
      const failure: unknown = await written(plain, given, reason).catch((error: unknown) => error);
      expect(failure).toBeInstanceOf(OperationFailed);
      expect(failure).toMatchObject({ errors: [{ extensions: { code } }] });
    }
    expect(await written(plain, results(one))).toBe('{"data":{"number":1}}');
  });
});

describe('when the gateway closes', () => {
  const closed = async (framing: Framing, isBefore: boolean) => {
    const closing = new AbortController();
    if (isBefore) closing.abort();
    let end = () => {};
    const ended = new Promise<IteratorResult<Result>>((settle) => {
      end = () => settle({ done: true, value: undefined });
    });
    const endless = {
      next: () => ended,
      return() {
        end();
        return ended;
      },
    };
    const reading = text(
      streamOf(
        { [Symbol.asyncIterator]: () => endless },
        { framing, heartbeat: 1_000, reason: async () => undefined, report() {}, closing: closing.signal },
      ),
    );
    closing.abort();
    return reading;
  };

  it.each([false, true])(
    'a stream ends as an error and not as complete; it began afterwards: %s',
    async (isBefore) => {
      await expect(closed(serverSentEvents, isBefore)).rejects.toThrow('The gateway closes');
      expect(await closed(multipart, isBefore)).toMatch(
        /\{"payload":null,"errors":\[\{"message":"The gateway closes; subscribe again","extensions":\{"code":"SERVICE_UNAVAILABLE"\}\}\]\}\r\n--graphql--\r\n$/,
      );
    },
  );
});

describe('while there are no results', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it.each([
    ['server-sent events', serverSentEvents, ':\n\n'],
    ['multipart', multipart, '\r\nContent-Type: application/json\r\n\r\n{}\r\n--graphql'],
  ])('a heartbeat is sent until the client disconnects: %s', async (_, framing, beat) => {
    const never = { next: () => new Promise<never>(() => {}), return: vi.fn() };
    const stream = streamOf(
      { [Symbol.asyncIterator]: () => never },
      { framing, heartbeat: 1_000, reason: async () => undefined, report() {}, closing: open },
    );
    const reader = stream.getReader();
    await reader.read();
    const next = reader.read();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(new TextDecoder().decode((await next).value)).toBe(beat);
    await reader.cancel();
    expect(never.return).toHaveBeenCalledOnce();
    expect(vi.getTimerCount()).toBe(0);
  });
});
