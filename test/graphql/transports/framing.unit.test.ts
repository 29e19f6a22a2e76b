/** How results are written for each media type, and which media type a client gets. */

import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  type Framing,
  framingFor,
  multipart,
  plain,
  type Reason,
  ResultsAborted,
  serverSentEvents,
  streamOf,
} from '../../../src/graphql/transports/framing.ts';

interface Result {
  stringify(): string;
}

async function* results(...each: (object | Error)[]): AsyncGenerator<Result> {
  for (const result of each) {
    if (result instanceof Error) throw result;
    yield { stringify: () => JSON.stringify(result) };
  }
}

const written = (framing: Framing, given: AsyncIterable<Result>, reason?: Reason, report = () => {}) =>
  text(streamOf(given, { framing, heartbeat: 1_000, reason: async () => reason, report }));

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

  it('abort an event stream when an error is thrown, and plain results with the reason', async () => {
    await expect(written(serverSentEvents, results(new Error('failed')))).rejects.toThrow();
    await expect(written(plain, results(new Error('failed')))).rejects.toEqual(new ResultsAborted('failed'));
    await expect(written(plain, results(one), 'revoked')).rejects.toEqual(new ResultsAborted('revoked'));
    expect(await written(plain, results(one))).toBe('{"data":{"number":1}}');
  });
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
      { framing, heartbeat: 1_000, reason: async () => undefined, report() {} },
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
