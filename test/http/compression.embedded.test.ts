/** The bytes that clients receive that accept compressed responses, from both APIs. */

import { once } from 'node:events';
import { type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { codings } from '../../src/http/compression.ts';
import { decoded } from '../support/decoded.ts';
import { type DemoGateway, openDemoGateway, openTestGateway, type TestGateway } from '../support/gateway.ts';

let gateway: DemoGateway;
beforeAll(async () => {
  gateway = await openDemoGateway();
});
afterAll(() => gateway?.close());

const browser = { 'Accept-Encoding': 'gzip, deflate, br, zstd' };
const list = '/api/v1/dtt/sessions';
const sessions = '{ dttSessions { nodes { id name createdAt segments { type passed points } } } }';

interface Sent {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** A GraphQL document to post. */
  readonly query?: string;
  readonly isAnonymous?: boolean;
  readonly at?: TestGateway;
}

async function open(path: string, { method, headers, query, isAnonymous, at = gateway }: Sent = {}) {
  const sending = request(at.url + path, {
    method: method ?? (query === undefined ? 'GET' : 'POST'),
    headers: {
      ...(!isAnonymous && { Authorization: `Bearer ${gateway.token}` }),
      ...(query !== undefined && { 'Content-Type': 'application/json' }),
      ...headers,
    },
  });
  sending.end(query === undefined ? undefined : JSON.stringify({ query }));
  const [response] = (await once(sending, 'response')) as [IncomingMessage];
  return { response, abort: () => sending.destroy() };
}

/** Sends a request, and returns the body as it was received, without decompressing it. */
async function ask(path: string, options: Sent = {}) {
  const { response } = await open(path, options);
  const body = Buffer.concat(await response.toArray());
  return { status: response.statusCode, headers: response.headers, body };
}

const textOf = ({ headers, body }: { headers: IncomingHttpHeaders; body: Buffer }) =>
  String(decoded(body, headers['content-encoding']));

const fields = Array.from({ length: 20 }, (_, index) => `nothing${index}`).join(' ');

describe('a response', () => {
  it.each<[string, string, Sent]>([
    ['of REST', list, {}],
    ['of GraphQL by POST', '/graphql', { query: sessions }],
    [
      'that takes a while to compress',
      '/graphql',
      {
        query: '{ __schema { types { name description fields { name description type { name kind } } } } }',
      },
    ],
    ['that is an error', '/graphql', { query: `{ viewer { ${fields} } }` }],
  ])('%s has the same text in every coding, when computed and when cached', async (_, path, options) => {
    const plain = await ask(path, options);
    expect(plain.headers['content-encoding']).toBeUndefined();
    expect(plain.headers.vary).toMatch(/\bAccept-Encoding$/);
    for (const coding of ['', ...codings]) {
      const form = await ask(path, { ...options, headers: { 'Accept-Encoding': coding } });
      expect([form.status, form.headers['content-encoding']]).toEqual([plain.status, coding || undefined]);
      expect(textOf(form)).toBe(String(plain.body));
      expect(form.headers['content-length']).toBe(String(form.body.length));
      expect(form.headers['content-type']).toBe(plain.headers['content-type']);
      expect(form.headers.vary).toMatch(/\bAccept-Encoding$/);
      if (coding !== '') expect(form.body.length).toBeLessThan(plain.body.length / 2);
    }
  });
});

it('a stream is not compressed, and delivers each event when it is sent', async () => {
  const { response, abort } = await open('/graphql', {
    query: 'subscription { activeDttTemplate { message } }',
    headers: { ...browser, Accept: 'text/event-stream' },
  });
  expect(response.headers).not.toHaveProperty('content-encoding');
  expect(response.headers.vary).toBe('Authorization, Accept');
  let read = '';
  response.setEncoding('utf8').on('data', (piece) => {
    read += piece;
  });
  for (const message of ['short', 'longer'.repeat(20_000)]) {
    await gateway.database.client.dttTemplate.updateMany({ data: { message } });
    await expect.poll(() => read.includes(`"message":"${message}"`)).toBe(true);
  }
  abort();
});

describe('with COMPRESSION=off', () => {
  let other: TestGateway;
  beforeAll(async () => {
    const settings = { COMPRESSION: 'off' };
    other = await openTestGateway({ ...gateway.database, close: async () => {} }, { settings });
  });
  afterAll(() => other?.close());

  it('no response is compressed, nor has Accept-Encoding in its Vary header', async () => {
    for (const options of [
      {},
      { query: sessions },
      { query: 'subscription { activeDttTemplate { name } }', headers: { Accept: 'text/event-stream' } },
    ]) {
      const path = 'query' in options ? '/graphql' : list;
      const { response, abort } = await open(path, {
        ...options,
        headers: { ...browser, ...options.headers },
        at: other,
      });
      expect(response.statusCode).toBe(200);
      expect(response.headers['content-encoding']).toBeUndefined();
      expect(response.headers.vary ?? '').not.toContain('Encoding');
      abort();
    }
  });
});
