/** Conditional requests (RFC 9110, section 13): asking again for what has not changed costs next to nothing. */

import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { routes } from '../../src/rest/routes.ts';
import { type Account, createAccount } from '../support/accounts.ts';
import { openTestGateway, type TestGateway } from '../support/gateway.ts';
import { pathsFor } from '../support/restResponses.ts';

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

/** Asks as it is told: `fetch` would add headers of its own. */
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

/** The GETs of both APIs. */
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

/** Changes what both APIs respond with, and waits until the gateway has heard of it. */
async function changeRank(): Promise<void> {
  const heard = new Promise<void>((settle) => {
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
  await heard;
}

describe.each(endpoints)('a GET of the %s API', (_, path, vary) => {
  it('carries a strong tag, and the headers that a cache needs', async () => {
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
    ['the tag', (tag: string) => tag],
    ['the weak form of the tag', (tag: string) => `W/${tag}`],
    ['a list with the tag', (tag: string) => `${otherTag}, ${tag}`],
    ['a list without spaces', (tag: string) => `${otherTag},W/${tag},"x"`],
    ['anything', () => '*'],
  ])('gets a 304 with %s, without a body and what describes one', async (_name, condition) => {
    const tag = await tagOf(path);
    for (const method of ['GET', 'HEAD']) {
      const { status, headers, body } = await ask(path, { 'If-None-Match': condition(tag) }, method);
      expect(status).toBe(304);
      expect(body).toBe('');
      expect(headers).not.toHaveProperty('content-type');
      expect(headers).not.toHaveProperty('content-length');
      // RFC 9110, section 15.4.5: what the 200 would have had.
      expect(headers).toMatchObject({ etag: tag, 'cache-control': 'private, no-cache', vary });
    }
  });

  it.each([
    ['another tag', () => otherTag],
    ['the tag without quotes', (tag: string) => tag.slice(1, -1)],
    ['a part of the tag', (tag: string) => `${tag.slice(0, -2)}"`],
    ['nothing', () => ''],
    ['the tag in lower case', (tag: string) => tag.toLowerCase()],
  ])('gets a 200 with %s', async (_name, condition) => {
    const tag = await tagOf(path);
    const { status, body } = await ask(path, { 'If-None-Match': condition(tag) });
    expect(status).toBe(200);
    expect(body).not.toBe('');
  });

  it('responds to HEAD as to GET but without the body, whichever comes first', async () => {
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

  it('responds correctly to a HEAD and a GET at the same moment', async () => {
    await changeRank();
    const [head, get] = await Promise.all([ask(path, {}, 'HEAD'), ask(path)]);
    expect(head?.body).toBe('');
    expect(get?.body).toContain('alice');
  });

  it('has another tag after a change, and the same after none', async () => {
    const tag = await tagOf(path);
    await changeRank();
    const changed = await ask(path, { 'If-None-Match': tag });
    expect(changed.status).toBe(200);
    expect(changed.headers.etag).not.toBe(tag);
    await gateway.database.client.user.update({
      where: { id: alice.userId },
      data: { rank: { decrement: 1 } },
    });
    // The bytes are as they were, so the tag is too: whoever has them need not be sent them.
    await expect.poll(() => tagOf(path)).toBe(tag);
  });

  it('reveals nothing to a viewer who sends the tag of another', async () => {
    const tag = await tagOf(path);
    const asBob = { Authorization: `Bearer ${bob.token}` };
    const { status, headers, body } = await ask(path, { ...asBob, 'If-None-Match': tag });
    expect(status).toBe(200);
    expect(headers.etag).not.toBe(tag);
    expect(body).toContain('bob');
  });

  it('checks the token before it evaluates a condition', async () => {
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
      // The feed asks its own connection whether it still lives, and announces something to itself now and then.
      if (!/^SELECT (1$|set_config)/.test(String(text))) statements.push(String(text));
      return Reflect.apply(query, this, given);
    });
  });
  afterEach(() => {
    vi.restoreAllMocks();
  });

  it.each(endpoints)('of the %s API reads nothing from the database', async (_, path) => {
    statements = [];
    await changeRank();
    const tag = await tagOf(path);
    // It takes a statement to know the rank: the counter counts.
    expect(statements.length).toBeGreaterThan(0);
    // What notes that the token was used is over soon.
    expect((await ask(path, { 'If-None-Match': tag })).status).toBe(304);
    await new Promise((settle) => setTimeout(settle, 100));
    await ask(path);
    statements = [];
    for (let time = 0; time < 10; time++)
      expect((await ask(path, { 'If-None-Match': tag })).status).toBe(304);
    expect(statements).toEqual([]);
  });
});

describe('every REST route that reads', () => {
  it.each(routes.filter(({ isMutation }) => !isMutation).map(({ path }) => path))(
    'can be asked conditionally: %s',
    async (route) => {
      for (const below of pathsFor(route, alice)) {
        const path = `/api/v1${below}`;
        const tag = await tagOf(path);
        expect(tag).toMatch(/^"[\w-]{43}"$/);
        expect((await ask(path, { 'If-None-Match': tag })).status).toBe(304);
      }
    },
  );
});

describe('a response that is not of a successful read', () => {
  it.each([
    ['a missing record', '/api/v1/dtt/999999', 404],
    ['a wrong id', '/api/v1/dtt/x', 400],
    ['a wrong page', '/api/v1/dtt?limit=0', 400],
    ['an unknown path', '/api/v1/nothing', 404],
    [
      'a query that fails',
      `/graphql?${new URLSearchParams({ query: '{ dttDevices(first: 0) { totalCount } }' })}`,
      200,
    ],
    ['a query that is not valid', `/graphql?${new URLSearchParams({ query: '{ nothing }' })}`, 200],
    ['a query that is none', `/graphql?${new URLSearchParams({ query: '{' })}`, 200],
  ])('carries no tag, and is not taken for one: %s', async (_, path, status) => {
    for (const condition of [{}, { 'If-None-Match': '*' }]) {
      const response = await ask(path, condition);
      expect(response.status).toBe(status);
      expect(response.headers).not.toHaveProperty('etag');
      expect(response.body).not.toBe('');
    }
  });

  it('carries no tag: an activation', async () => {
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

  it('carries no tag: a query by POST, which nobody may cache', async () => {
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
  it('has a response of its own for each type that a client accepts', async () => {
    const types = ['application/json', 'application/graphql-response+json'];
    const responses = [];
    for (const Accept of [...types, ...types]) responses.push(await ask(graphqlPath, { Accept }));
    expect(responses.map(({ headers }) => headers['content-type']?.split(';')[0])).toEqual([
      ...types,
      ...types,
    ]);
  });

  it('comes from the cache the second time', async () => {
    await ask(graphqlPath);
    const { hits } = gateway.responseCache.counters;
    await ask(graphqlPath);
    expect(gateway.responseCache.counters.hits).toBe(hits + 1);
  });
});

/** The headers that say something about the response, rather than about the moment or the request. */
function aboutResponse(response: { headers: IncomingHttpHeaders } | undefined): IncomingHttpHeaders {
  const { date, 'x-request-id': id, ratelimit, ...others } = response?.headers ?? {};
  return others;
}
