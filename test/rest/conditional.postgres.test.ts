/** Conditional requests (RFC 9110, section 13): a request for something unchanged gets a 304 at little cost. */

import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Account, createAccount } from '../support/accounts.ts';
import { openTestGateway, type TestGateway } from '../support/gateway.ts';

let gateway: TestGateway;
let alice: Account;
let bob: Account;

beforeAll(async () => {
  gateway = await openTestGateway();
  alice = await createAccount(gateway.database.client, 'alice');
  bob = await createAccount(gateway.database.client, 'bob');
});
afterAll(() => gateway?.close());

interface Raw {
  status: number;
  headers: IncomingHttpHeaders;
  body: string;
}

/** Sends a request with exactly these headers: `fetch` would add its own. */
function ask(path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Raw> {
  return new Promise((resolve, reject) => {
    const options = { method, headers: { Authorization: `Bearer ${alice.token}`, ...headers } };
    const request = httpRequest(gateway.url + path, options, (response) => {
      let body = '';
      response.on('data', (data) => {
        body += data;
      });
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body }),
      );
    });
    request.on('error', reject).end();
  });
}

const graphqlPath = `/graphql?${new URLSearchParams({ query: '{ viewer { username rank } }' })}`;

/** A GET of each API: its name, its path and the Vary header of its response. */
const endpoints: readonly [string, string, string][] = [
  ['REST', '/api/v1/users/me', 'Authorization, Accept-Encoding'],
  ['GraphQL', graphqlPath, 'Authorization, Accept, Accept-Encoding'],
];

const otherTag = `"${'A'.repeat(43)}"`;

async function tagOf(path: string): Promise<string> {
  const { status, headers } = await ask(path);
  expect(status).toBe(200);
  return headers.etag ?? '';
}

/** Changes the responses of both APIs, and waits until the gateway has received the change. */
async function changeRank(): Promise<void> {
  const received = new Promise<void>((settle) => {
    const unsubscribe = gateway.feed.subscribe((change) => {
      if (change.kind !== 'user' || change.userId !== alice.userId) return;
      unsubscribe();
      settle();
    });
  });
  await gateway.database.client.user.update({
    where: { id: alice.userId },
    data: { rank: { increment: 1 } },
  });
  await received;
}

describe.each(endpoints)('a GET of the %s API', (_, path, vary) => {
  it('has a response with a strong ETag, Cache-Control and Vary', async () => {
    const first = await ask(path);
    expect(first.status).toBe(200);
    expect(first.headers.etag).toMatch(/^"[\w-]{43}"$/);
    expect(first.headers['cache-control']).toBe('private, no-cache');
    expect(first.headers.vary).toBe(vary);
    const again = await ask(path);
    expect(aboutResponse(again)).toEqual(aboutResponse(first));
    expect(again.body).toBe(first.body);
  });

  it.each([
    ['the ETag', (tag: string) => tag],
    ['the weak form of the ETag', (tag: string) => `W/${tag}`],
    ['a list that contains the ETag', (tag: string) => `${otherTag}, ${tag}`],
    ['a list without spaces that contains the ETag', (tag: string) => `${otherTag},W/${tag},"x"`],
    ['*', () => '*'],
  ])('gets a 304 without a body and its headers when If-None-Match is %s', async (_name, condition) => {
    const tag = await tagOf(path);
    for (const method of ['GET', 'HEAD']) {
      const { status, headers, body } = await ask(path, { 'If-None-Match': condition(tag) }, method);
      expect(status).toBe(304);
      expect(body).toBe('');
      expect(headers).not.toHaveProperty('content-type');
      expect(headers).not.toHaveProperty('content-length');
      // RFC 9110, section 15.4.5: a 304 has these headers of the 200.
      expect(headers).toMatchObject({ etag: tag, 'cache-control': 'private, no-cache', vary });
    }
  });

  it.each([
    ['another ETag', () => otherTag],
    ['the ETag without quotes', (tag: string) => tag.slice(1, -1)],
    ['a part of the ETag', (tag: string) => `${tag.slice(0, -2)}"`],
    ['empty', () => ''],
    ['the ETag in lower case', (tag: string) => tag.toLowerCase()],
  ])('gets a 200 when If-None-Match is %s', async (_name, condition) => {
    const tag = await tagOf(path);
    const { status, body } = await ask(path, { 'If-None-Match': condition(tag) });
    expect(status).toBe(200);
    expect(body).not.toBe('');
  });

  it('gets the same response for HEAD without the body, whichever of GET and HEAD is first', async () => {
    for (const [first, second] of [
      ['HEAD', 'GET'],
      ['GET', 'HEAD'],
    ] as const) {
      await changeRank();
      const responses = { [first]: await ask(path, {}, first), [second]: await ask(path, {}, second) };
      const [head, get] = [responses.HEAD, responses.GET];
      expect(head?.body).toBe('');
      expect(get?.body).toContain('alice');
      expect(aboutResponse(head)).toEqual(aboutResponse(get));
      expect(Number(head?.headers['content-length'])).toBe(get?.body.length);
    }
  });

  it('gets a body for GET and none for HEAD when both are sent at the same time', async () => {
    await changeRank();
    const [head, get] = await Promise.all([ask(path, {}, 'HEAD'), ask(path)]);
    expect(head?.body).toBe('');
    expect(get?.body).toContain('alice');
  });

  it('gets another ETag after a change, and the earlier one when the change is undone', async () => {
    const tag = await tagOf(path);
    await changeRank();
    const changed = await ask(path, { 'If-None-Match': tag });
    expect(changed.status).toBe(200);
    expect(changed.headers.etag).not.toBe(tag);
    await gateway.database.client.user.update({
      where: { id: alice.userId },
      data: { rank: { decrement: 1 } },
    });
    // The body is the same as at first, and so is its ETag: a client that has it need not get it again.
    await expect.poll(() => tagOf(path)).toBe(tag);
  });

  it('gets a 200 with the own data when a viewer sends the ETag of another viewer', async () => {
    const tag = await tagOf(path);
    const asBob = { Authorization: `Bearer ${bob.token}` };
    const { status, headers, body } = await ask(path, { ...asBob, 'If-None-Match': tag });
    expect(status).toBe(200);
    expect(headers.etag).not.toBe(tag);
    expect(body).toContain('bob');
  });

  it('gets a 401 for an unknown token, whatever If-None-Match is', async () => {
    const { status, headers } = await ask(path, { Authorization: 'Bearer x', 'If-None-Match': '*' });
    expect(status).toBe(401);
    expect(headers).not.toHaveProperty('etag');
  });
});

describe('a 304', () => {
  let statements: string[];
  beforeEach(() => {
    const query = pg.Client.prototype.query;
    vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (
      this: pg.Client,
      ...given: unknown[]
    ) {
      const [first] = given;
      const text = typeof first === 'object' && first !== null && 'text' in first ? first.text : first;
      // Left out: the feed checks its own connection from time to time, and sends itself a notification.
      if (!/^SELECT (1$|set_config)/.test(String(text))) statements.push(String(text));
      return Reflect.apply(query, this, given);
    });
  });
  afterEach(() => {
    vi.restoreAllMocks();
  });

  it.each(endpoints)('of the %s API needs no statement of the database', async (_, path) => {
    statements = [];
    await changeRank();
    const tag = await tagOf(path);
    // The first response needs a statement, so the counter works.
    expect(statements.length).toBeGreaterThan(0);
    // The statement that stores when the token was used is over soon.
    expect((await ask(path, { 'If-None-Match': tag })).status).toBe(304);
    await new Promise((settle) => setTimeout(settle, 100));
    await ask(path);
    statements = [];
    for (let time = 0; time < 10; time++)
      expect((await ask(path, { 'If-None-Match': tag })).status).toBe(304);
    expect(statements).toEqual([]);
  });
});

describe('a response other than that of a successful GET', () => {
  it.each([
    ['a missing record', '/api/v1/dtt/999999', 404],
    ['an invalid id', '/api/v1/dtt/x', 400],
    ['an invalid limit', '/api/v1/dtt?limit=0', 400],
    ['an unknown path', '/api/v1/nothing', 404],
    [
      'a query that fails',
      `/graphql?${new URLSearchParams({ query: '{ dttDevices(first: 0) { totalCount } }' })}`,
      200,
    ],
    [
      'a query that the schema does not allow',
      `/graphql?${new URLSearchParams({ query: '{ nothing }' })}`,
      200,
    ],
    ['a query with a syntax error', `/graphql?${new URLSearchParams({ query: '{' })}`, 200],
  ])('has no ETag, and is never replaced by a 304: %s', async (_, path, status) => {
    for (const condition of [{}, { 'If-None-Match': '*' }]) {
      const response = await ask(path, condition);
      expect(response.status).toBe(status);
      expect(response.headers).not.toHaveProperty('etag');
      expect(response.body).not.toBe('');
    }
  });

  it('has no ETag: an activation', async () => {
    const response = await fetch(`${gateway.url}/api/v1/dtt/templates/${bob.dttTemplates[0]}`, {
      method: 'POST',
      headers: {
        Authorization: `Bearer ${bob.token}`,
        'Content-Type': 'application/json',
        'If-None-Match': '*',
      },
      body: '{"isActive":true}',
    });
    expect(response.status).toBe(200);
    expect(response.headers.get('ETag')).toBeNull();
  });

  it('has no ETag: a query by POST', async () => {
    for (let time = 0; time < 3; time++) {
      const response = await fetch(`${gateway.url}/graphql`, {
        method: 'POST',
        headers: {
          Authorization: `Bearer ${alice.token}`,
          'Content-Type': 'application/json',
          'If-None-Match': '*',
        },
        body: JSON.stringify({ query: '{ viewer { username } }' }),
      });
      expect(response.status).toBe(200);
      expect(response.headers.get('ETag')).toBeNull();
      await response.text();
    }
  });
});

describe('a GraphQL GET', () => {
  it('gets the media type that Accept names, also from the cache', async () => {
    const types = ['application/json', 'application/graphql-response+json'];
    const responses = [];
    for (const Accept of [...types, ...types]) responses.push(await ask(graphqlPath, { Accept }));
    expect(responses.map(({ headers }) => headers['content-type']?.split(';')[0])).toEqual([
      ...types,
      ...types,
    ]);
  });

  it('gets a cached response the second time', async () => {
    await ask(graphqlPath);
    const { hits } = gateway.responseCache.counters;
    await ask(graphqlPath);
    expect(gateway.responseCache.counters.hits).toBe(hits + 1);
  });
});

/** The headers that do not depend on the time or the individual request. */
function aboutResponse(response: { headers: IncomingHttpHeaders } | undefined): IncomingHttpHeaders {
  const { date, 'x-request-id': id, ratelimit, ...others } = response?.headers ?? {};
  return others;
}
