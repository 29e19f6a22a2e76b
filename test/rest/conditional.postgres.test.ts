/** Conditional requests (RFC 9110, section 13): a request for something unchanged gets a 304 at little cost. */

import { once } from 'node:events';
import { get, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { gatewayWith } from '../support/setUp.ts';
import { noteStatements } from '../support/statements.ts';

const { gateway, alice, bob } = await gatewayWith(['alice', 'bob']);

const statements = noteStatements();

/** Sends a request with exactly these headers: `fetch` would add its own. */
async function ask(path: string, headers: Record<string, string> = {}, method = 'GET') {
  const options = { method, headers: { Authorization: `Bearer ${alice.token}`, ...headers } };
  // The type of `once` does not tell the types of the arguments of an event.
  const [response] = (await once(get(gateway.url + path, options), 'response')) as [IncomingMessage];
  return { status: response.statusCode, headers: response.headers, body: await text(response) };
}

const graphqlPath = `/graphql?${new URLSearchParams({ query: '{ viewer { username rank } }' })}`;

/** A GET of each API: its name, its path and the Vary header of its response. */
const endpoints: readonly [string, string, string][] = [
  ['REST', '/api/v1/users/me', 'Authorization, Accept, Accept-Encoding'],
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
  it('has a response with a strong ETag, and gets a 304 without a body for it, as HEAD does', async () => {
    const first = await ask(path);
    expect(first).toMatchObject({ status: 200, headers: { 'cache-control': 'private, no-cache', vary } });
    expect(first.headers.etag).toMatch(/^"[\w-]{43}"$/);
    const { etag = '' } = first.headers;
    for (const condition of [etag, `W/${etag}`, `${otherTag},W/${etag}`, '*'])
      for (const method of ['GET', 'HEAD']) {
        const { status, headers, body } = await ask(path, { 'If-None-Match': condition }, method);
        expect([status, body]).toEqual([304, '']);
        expect(headers).not.toHaveProperty('content-type');
        expect(headers).not.toHaveProperty('content-length');
        // RFC 9110, section 15.4.5: a 304 has these headers of the 200.
        expect(headers).toMatchObject({ etag, 'cache-control': 'private, no-cache', vary });
      }
    for (const condition of [otherTag, etag.slice(1, -1), `${etag.slice(0, -2)}"`, '', etag.toLowerCase()])
      expect(await ask(path, { 'If-None-Match': condition })).toMatchObject({
        status: 200,
        body: first.body,
      });
    if (path !== graphqlPath) return;
    // The same bytes of another media type are another representation.
    const accept = 'application/graphql-response+json';
    expect((await ask(path, { Accept: accept, 'If-None-Match': etag })).status).toBe(200);
  });

  it('gets the same response for HEAD without the body, whichever of GET and HEAD is first', async () => {
    for (const methods of [
      ['HEAD', 'GET'],
      ['GET', 'HEAD'],
    ]) {
      await changeRank();
      const responses = [];
      for (const method of methods) responses.push(await ask(path, {}, method));
      const head = responses[methods.indexOf('HEAD')];
      const whole = responses[methods.indexOf('GET')];
      expect([head?.body, whole?.body]).toEqual(['', expect.stringContaining('alice')]);
      expect(aboutResponse(head)).toEqual(aboutResponse(whole));
    }
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

  it('gets nothing for the ETag of another viewer, and for an unknown token', async () => {
    const tag = await tagOf(path);
    const asBob = { Authorization: `Bearer ${bob.token}`, 'If-None-Match': tag };
    expect(await ask(path, asBob)).toMatchObject({ status: 200, body: expect.stringContaining('bob') });
    const { status, headers } = await ask(path, { Authorization: 'Bearer x', 'If-None-Match': '*' });
    expect(status).toBe(401);
    expect(headers).not.toHaveProperty('etag');
  });

  it('needs no statement of the database for a 304', async () => {
    await changeRank();
    const tag = await tagOf(path);
    // The first response needs a statement, so the counter works.
    expect(statements.length).toBeGreaterThan(0);
    statements.length = 0;
    for (let time = 0; time < 10; time++)
      expect((await ask(path, { 'If-None-Match': tag })).status).toBe(304);
    // Left out: the change feed checks its own connection from time to time.
    expect(statements.filter((text) => text !== 'SELECT 1')).toEqual([]);
  });
});

/** The headers that do not depend on the time or the individual request. */
function aboutResponse(response: { headers: IncomingHttpHeaders } | undefined): IncomingHttpHeaders {
  const { date, 'x-request-id': id, ratelimit, ...others } = response?.headers ?? {};
  return others;
}
