/** Authentication and rate limits: a client that sends too many requests is rejected before any work is done for it. */

import type { IncomingMessage } from 'node:http';
import pg from 'pg';
import { describe, expect, it, vi } from 'vitest';
import { createToken, revokeToken } from '../../src/auth/tokens.ts';
import { addressOf } from '../../src/http/clientAddress.ts';
import { graphqlOnce, rest } from '../support/gateway.ts';
import { openRaw, parseResponses } from '../support/rawHttp.ts';
import { hasTools } from '../support/settings.ts';
import { databaseWith, gatewayBeside } from '../support/setUp.ts';

const { database, alice, bob } = await databaseWith('alice', 'bob');

const limitedGateway = ({ tokens = 0, anonymous = 0, proxies = 0 }) =>
  gatewayBeside(database, {
    settings: {
      RATE_LIMIT: String(tokens),
      RATE_LIMIT_ANONYMOUS: String(anonymous),
      TRUST_PROXY: String(proxies),
    },
  });

const guess = (number: number) => `dvt_${String(number).padStart(43, 'A')}`;
const statuses = (responses: { status: number }[]) => responses.map(({ status }) => status);

it.each([
  ['is revoked', 'the token is unknown or revoked', (id: number) => revokeToken(database.pool, id)],
  [
    'expires',
    'the token has expired or was replaced',
    (id: number) => database.client.apiToken.update({ where: { id }, data: { expiresAt: new Date() } }),
  ],
])(
  'requests whose token %s while their bodies are being received are rejected with 401',
  async (how, why, end) => {
    const settings = { MCP: 'write' };
    const gateway = await gatewayBeside(database, { settings });
    const { id, token } = await createToken(database.pool, 'alice', how);
    const viewer = { query: '{ viewer { username } }' };
    const requests: [path: string, content: unknown][] = [
      ['/api/v1/dtt/templates/2', { isActive: true }],
      ['/graphql', viewer],
      ['/graphql', { query: 'mutation { activateTemplate(template: { databaseId: 2 }) { viewer { id } } }' }],
    ];
    if (hasTools) requests.push(['/mcp', { jsonrpc: '2.0', id: 1, method: 'ping' }]);
    const connections = await Promise.all(
      requests.map(async ([path, content]) => {
        const connection = await openRaw(gateway.url);
        const body = JSON.stringify(content);
        connection.socket.write(
          `POST ${path} HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\nAuthorization: Bearer ${token}\r\n` +
            'Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n' +
            `Content-Length: ${body.length}\r\n\r\n${body.slice(0, 5)}`,
        );
        return { ...connection, rest: body.slice(5) };
      }),
    );
    // Once this response is here, the requests above have been authenticated as well.
    expect((await rest(gateway, token, '/users/me')).status).toBe(200);
    await end(id);
    await expect.poll(async () => (await rest(gateway, token, '/users/me')).status).toBe(401);
    const responsesOf = connections.map(async ({ socket, rest, ended }) => {
      socket.write(rest);
      return parseResponses(await ended()).map(({ status, headers }) => [
        status,
        headers['www-authenticate'],
      ]);
    });
    const challenge = `Bearer error="invalid_token", error_description="${why}"`;
    expect(await Promise.all(responsesOf)).toEqual(requests.map(() => [[401, challenge]]));
  },
);

it('the rate limit of a token counts cached responses as well, and each response says how many requests are left', async () => {
  const gateway = await limitedGateway({ tokens: 4 });
  for (const [count, status] of [200, 200, 200, 200, 429].entries()) {
    const response = await rest(gateway, alice.token, '/users/me');
    expect(response.status).toBe(status);
    expect(response.headers.get('RateLimit-Policy')).toBe('"token";q=4;w=60');
    expect(response.headers.get('RateLimit')).toMatch(`"token";r=${Math.max(3 - count, 0)};t=`);
    if (status === 429) expect(response.body).toEqual({ ok: false, error: 'Too many requests' });
  }
  expect(gateway.responseCache.counters.hits).toBe(3);
  const { status, headers, errors } = await graphqlOnce(gateway, alice.token, '{ viewer { id } }');
  const retryAfter = Number(headers.get('Retry-After'));
  expect([status, headers.get('RateLimit')]).toEqual([429, `"token";r=0;t=${retryAfter}`]);
  const extensions = { code: 'TOO_MANY_REQUESTS', retryAfter };
  expect(errors).toEqual([{ message: 'Too many requests', extensions }]);
  // Each token has a limit of its own.
  const { token } = await createToken(database.pool, 'alice', 'another');
  for (const other of [token, bob.token]) expect((await rest(gateway, other, '/users/me')).status).toBe(200);
});

describe('the rate limit of an address', () => {
  it('limits how many unknown tokens it may try per minute', async () => {
    const gateway = await limitedGateway({ anonymous: 5 });
    const guesses = await Promise.all(
      Array.from({ length: 20 }, (_, number) => rest(gateway, guess(number), '/users/me')),
    );
    expect(statuses(guesses).sort()).toEqual([...Array(5).fill(401), ...Array(15).fill(429)]);
    const { headers, body } = await rest(gateway, undefined, '/users/me');
    expect(body).toEqual({ ok: false, error: 'Too many requests' });
    expect(headers.get('RateLimit-Policy')).toBe('"address";q=5;w=60');
    expect(headers.get('Retry-After')).toMatch(/^\d+$/);
    // Pages and probes are not limited.
    expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200);
  });

  it('counts no request with a valid token, even when many arrive at once, and rejects none once it is used up', async () => {
    const gateway = await limitedGateway({ anonymous: 2 });
    const responses = await Promise.all(
      Array.from({ length: 30 }, () => rest(gateway, alice.token, '/users/me')),
    );
    expect(new Set(statuses(responses))).toEqual(new Set([200]));
    for (const expected of [401, 401, 429])
      expect((await rest(gateway, guess(1), '/users/me')).status).toBe(expected);
    // One of the tokens is cached. After a revocation of another one of the user, none is.
    for (let round = 0; round < 2; round++) {
      for (const { token } of [alice, bob])
        expect((await rest(gateway, token, '/users/me')).status).toBe(200);
      const { id } = await createToken(database.pool, 'alice', `revoked ${round}`);
      await revokeToken(database.pool, id);
    }
  });

  it('does not count tokens whose look-up failed', async () => {
    const gateway = await limitedGateway({ anonymous: 1 });
    const away = vi.spyOn(pg.Pool.prototype, 'query').mockRejectedValue(new Error('the database is away'));
    for (const token of [alice.token, guess(1), guess(2)])
      expect((await rest(gateway, token, '/users/me')).status).toBe(500);
    away.mockRestore();
    for (const expected of [401, 429])
      expect((await rest(gateway, guess(1), '/users/me')).status).toBe(expected);
  });

  it('counts introspection, which needs no token', async () => {
    const gateway = await limitedGateway({ anonymous: 2 });
    const ask = () => graphqlOnce(gateway, undefined, '{ __typename }');
    expect(statuses([await ask(), await ask(), await ask()])).toEqual([200, 200, 429]);
  });

  it('counts the client address that the trusted proxy forwards', async () => {
    const gateway = await limitedGateway({ anonymous: 1, proxies: 1 });
    const from = (address: string) =>
      rest(gateway, undefined, '/users/me', { headers: { 'X-Forwarded-For': address } });
    expect((await from('203.0.113.1')).status).toBe(401);
    expect((await from('203.0.113.1')).status).toBe(429);
    expect((await from('203.0.113.2')).status).toBe(401);
    // An address that the client itself wrote into the header is ignored.
    expect((await from('198.51.100.9, 203.0.113.2')).status).toBe(429);
  });

  it.each([
    [0, '203.0.113.9', '198.51.100.1', '203.0.113.9'],
    [1, '127.0.0.1', 'x, 198.51.100.1', '198.51.100.1'],
    [2, '127.0.0.1', 'x, 198.51.100.1, 10.0.0.1', '198.51.100.1'],
    [2, '127.0.0.1', '198.51.100.1', '198.51.100.1'],
    [1, '127.0.0.1', '198.51.100.10:5678', '198.51.100.10'],
    [1, '127.0.0.1', '198.51.100.1:5678:9', '198.51.100.1:5678:9'],
    [1, '127.0.0.1', '[2001:db8::1]:5678', '2001:db8:0:0'],
    [1, '127.0.0.1', '[2001:db8::1]', '2001:db8:0:0'],
    [1, '127.0.0.1', '[2001:db8::1]x', '[2001:db8::1]x'],
    [1, '127.0.0.1', undefined, '127.0.0.1'],
    [0, '::ffff:203.0.113.9', undefined, '203.0.113.9'],
    [0, '2001:db8:1:2:3:4:5:6', undefined, '2001:db8:1:2'],
    [0, undefined, undefined, ''],
  ])(
    'behind %i trusted proxies, with a connection from %s and X-Forwarded-For %s, counts for address %s',
    (proxies, direct, forwarded, expected) => {
      const request = { socket: { remoteAddress: direct }, headers: { 'x-forwarded-for': forwarded } };
      // The parts of a request that the address is read from.
      expect(addressOf(request as unknown as IncomingMessage, proxies)).toBe(expected);
    },
  );
});
