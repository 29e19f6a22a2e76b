/** What is open when its token expires: a WebSocket, event streams by POST and GET, and a multipart stream. */

import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createToken, rotateToken } from '../../src/auth/tokens.ts';
import { type Account, createAccount, setActive } from '../support/accounts.ts';
import { subscribe } from '../support/events.ts';
import { graphqlOnce, rest } from '../support/gateway.ts';
import { hasWebSockets } from '../support/settings.ts';
import { gatewayWith } from '../support/setUp.ts';
import { closeSockets, connectSocket } from '../support/sockets.ts';

let account: Account;
let names = 0;
const { gateway } = await gatewayWith([]);
afterEach(closeSockets);

const query = 'subscription { activeDttTemplate { databaseId } }';
const expired = 'Unauthorized: the token has expired or was replaced';

/** What a client has received until now, and the time at which the gateway ended it. */
interface Followed {
  text: string;
  readonly ended: Promise<number>;
}

async function stream(token: string, accept: string, method: 'GET' | 'POST'): Promise<Followed> {
  const { response } = await subscribe(gateway, token, query, { method, accept });
  expect(response.status).toBe(200);
  async function read(): Promise<number> {
    for await (const piece of response.body ?? []) followed.text += Buffer.from(piece).toString();
    return Date.now();
  }
  const followed = { text: '', ended: read() };
  return followed;
}

async function socket(token: string): Promise<Followed> {
  const { socket: webSocket, send, closed } = await connectSocket(gateway, token);
  const followed = {
    text: '',
    ended: closed.then(({ code, reason }) => {
      followed.text += `${code} ${reason}`;
      return Date.now();
    }),
  };
  webSocket.on('message', (data) => {
    followed.text += String(data);
  });
  send({ id: '1', type: 'subscribe', payload: { query } });
  return followed;
}

/** Opens a stream of each kind, and waits for their first results. */
async function followAll(token: string): Promise<Followed[]> {
  const all = await Promise.all([
    ...(hasWebSockets ? [socket(token)] : []),
    stream(token, 'text/event-stream', 'POST'),
    stream(token, 'text/event-stream', 'GET'),
    stream(token, 'multipart/mixed;subscriptionSpec=1.0', 'POST'),
  ]);
  await expectAll(all, 'null');
  return all;
}

/** Waits until all have been sent the active template. */
const expectAll = (all: readonly Followed[], id: unknown) =>
  vi.waitFor(
    () => {
      for (const { text } of all)
        expect(text).toContain(id === 'null' ? '"activeDttTemplate":null' : `"databaseId":${id}}`);
    },
    { timeout: 20_000 },
  );

const activate = (index: 0 | 1 | 2) => setActive(gateway.database.client, account, index);

async function createExpiring(milliseconds: number) {
  account = await createAccount(gateway.database.client, `expiring ${names++}`);
  const expiresAt = new Date(Date.now() + milliseconds);
  return {
    expiresAt: expiresAt.getTime(),
    ...(await createToken(gateway.database.pool, account.username, 'short', { expiresAt })),
  };
}

/** Expects that all are told why they end, and were not sent the template that has become active since. */
async function expectEnds(all: readonly Followed[], id: number): Promise<void> {
  await Promise.all(all.map(({ ended }) => ended));
  for (const { text } of all) {
    expect(text).toContain(expired);
    expect(text).not.toContain(`"databaseId":${id}}`);
  }
}

describe('an expired token', () => {
  it('ends them within a moment, without a question to the database for each event', async () => {
    const { token, expiresAt } = await createExpiring(6_000);
    const all = await followAll(token);
    const asked = vi.spyOn(gateway.database.pool, 'query');
    await activate(0);
    await expectAll(all, account.dttTemplates[0]);
    await activate(1);
    await expectAll(all, account.dttTemplates[1]);
    const questions = asked.mock.calls.map(([batch]) => String(Object(batch).text));
    expect(questions).toContainEqual(expect.stringContaining('"DttTemplate"'));
    expect(questions.filter((text) => /"ApiToken"/.test(text) && !/UPDATE/.test(text))).toEqual([]);
    await sleep(expiresAt - Date.now() + 5);
    await activate(2);
    await expectEnds(all, account.dttTemplates[2]);
    for (const { ended } of all) expect((await ended) - expiresAt).toBeLessThan(1_000);

    const { status, errors, headers } = await graphqlOnce(gateway, token, '{ viewer { username } }');
    expect([status, errors?.[0]?.message]).toEqual([401, expired]);
    expect(headers.get('WWW-Authenticate')).toContain(
      'error_description="the token has expired or was replaced"',
    );
    const { status: ofRest, headers: others } = await rest(gateway, token, '/users/me');
    expect([ofRest, others.get('WWW-Authenticate')]).toEqual([401, headers.get('WWW-Authenticate')]);
    if (hasWebSockets) await expect(connectSocket(gateway, token)).rejects.toThrow('the socket was closed');
  });

  it.each([
    ['forward', 3_600_000],
    ['back first, and then forward', 7_200_000],
  ])('delivers nothing more once the clock is set %s', async (name, step) => {
    const { token } = await createExpiring(3_600_000);
    const all = await followAll(token);
    const now = Date.now();
    const clock = vi.spyOn(Date, 'now');
    if (name !== 'forward') {
      clock.mockReturnValue(now - step);
      await activate(1);
      await expectAll(all, account.dttTemplates[1]);
    }
    clock.mockReturnValue(now + 3_600_000);
    const began = performance.now();
    await activate(0);
    await expectEnds(all, account.dttTemplates[0]);
    // The change is what has them look at the clock. Without one they look every half a minute.
    expect(performance.now() - began).toBeLessThan(10_000);
  });
});

it('a secret that is replaced ends its streams when it is kept no longer', async () => {
  account = await createAccount(gateway.database.client, `rotating ${names++}`);
  const { pool } = gateway.database;
  const { id, token } = await createToken(pool, account.username, 'rotated');
  const all = await followAll(token);
  const { token: next } = await rotateToken(pool, id, 4_000);
  const [newer] = [await stream(next, 'text/event-stream', 'POST')];
  await activate(0);
  await expectAll([...all, newer], account.dttTemplates[0]);
  await sleep(4_000);
  await activate(1);
  await expectEnds(all, account.dttTemplates[1]);
  await expectAll([newer], account.dttTemplates[1]);
  // Replaced once more and not kept: it ends at once.
  await rotateToken(pool, id, 0);
  await expectEnds([newer], account.dttTemplates[2]);
});
