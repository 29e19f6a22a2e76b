/** Hostile HTTP over raw sockets: always a well-formed 4xx in the right envelope, and no connection left open. */

import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { messages } from '../../src/errors.ts';
import { mostPipelined } from '../../src/http/connections.ts';
import { type Events, subscribe } from '../support/events.ts';
import { rest } from '../support/gateway.ts';
import { openRaw, parseResponses, type RawResponse } from '../support/rawHttp.ts';
import { hasWebSockets } from '../support/settings.ts';
import { gatewayBeside, gatewayWith, holdTransaction } from '../support/setUp.ts';
import { closeSockets, connectSocket, openSocket } from '../support/sockets.ts';

const timeouts = { head: 1_000, request: 1_500, silence: 5_000, idle: 5_000, closing: 300 };

const { gateway, alice } = await gatewayWith(['alice'], { timeouts });

let logged: number;
beforeEach(() => {
  logged = gateway.log.length;
});

// After each case the gateway still responds, has logged no error, and has no connection open.
afterEach(async () => {
  const { status } = await rest(gateway, alice.token, '/users/me', { headers: { Connection: 'close' } });
  expect(status).toBe(200);
  expect(gateway.log.slice(logged)).toEqual([]);
  await expect.poll(() => gateway.connections(), { interval: 10, timeout: 4_000 }).toBe(0);
});

const host = () => `Host: x\r\nAuthorization: Bearer ${alice.token}\r\n`;
const json = 'Content-Type: application/json\r\n';
const viewer = '{ viewer { username } }';
const validBody = `{"query":"${viewer}"}`;

const get = (target: string, headers = '', version = 'HTTP/1.1') =>
  `GET ${target} ${version}\r\n${host()}${headers}\r\n`;
/** Latin-1 throughout, so that a character is a byte. */
const post = (target: string, body: string, headers = json) =>
  `POST ${target} HTTP/1.1\r\n${host()}${headers}Content-Length: ${body.length}\r\n\r\n${body}`;
const chunked = (target: string, chunks: string) =>
  `POST ${target} HTTP/1.1\r\n${host()}${json}Transfer-Encoding: chunked\r\n\r\n${chunks}`;
/** The head of a request whose body is announced but not sent. */
const tooLarge = (target: string, length: string) =>
  `POST ${target} HTTP/1.1\r\n${host()}${json}${length}\r\n\r\n`;
const subscription = 'subscription { activeDttTemplate { name } }';
const stream = `/graphql?query=${encodeURIComponent(subscription)}`;
const events = 'Accept: text/event-stream\r\n';
/** An upgrade to a protocol that the gateway does not support. */
const offer = 'Connection: upgrade\r\nUpgrade: h2c\r\n';
const handshake =
  'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n';
/** Errors have a status of their own in this type. */
const accept = 'Accept: application/graphql-response+json\r\n';
const activation = () => `/api/v1/dtt/templates/${alice.dttTemplates[0]}`;

/** Checks that the response is an error in the envelope of its API. */
function expectError({ status, headers, body }: RawResponse, expected: number, envelope?: string): void {
  expect({ status, body }).toMatchObject({ status: expected });
  expect(headers['x-content-type-options'] ?? headers.connection).toMatch(/nosniff|close/);
  expect(headers['cache-control']).toBe('no-store');
  const error = expect.stringMatching(/./);
  const errors = [{ message: error, extensions: { code: expect.stringMatching(/^[A-Z_]+$/) } }];
  const isPage = envelope === 'page';
  expect(headers['content-type']).toBe(`${isPage ? 'text/plain' : 'application/json'}; charset=utf-8`);
  if (isPage) expect(body).toMatch(/^[^\n]+\n$/);
  else expect(JSON.parse(body)).toMatchObject(envelope === 'rest' ? { ok: false, error } : { errors });
}

/** Sends the bytes, and behind them a request with `Connection: close`; returns the responses once the connection is closed. */
async function responsesTo(bytes: string): Promise<RawResponse[]> {
  const { socket, ended } = await openRaw(gateway.url);
  socket.write(bytes, 'latin1');
  socket.write(`GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
  return parseResponses(await ended());
}

const long = 'x'.repeat(100_000);
const deep = 50_000;

const activate = (body: string, headers?: string) => post(activation(), body, headers);
const graphql = (body: string, headers?: string) => post('/graphql', body, headers);

/** Each has the status and the envelope of its response in its name. */
const wrong: Record<string, () => string> = {
  '400 rest: bytes that are not HTTP': () => '\x16\x03\x01\x02\x00\x01',
  '400 rest: a request without a host': () => 'GET /api/v1/dtt HTTP/1.1\r\n\r\n',
  '400 rest: Content-Length with chunks': () => graphql(validBody, `${json}Transfer-Encoding: chunked\r\n`),
  '400 rest: a deeply nested activation': () => activate('['.repeat(deep)),
  '400 rest: a second host': () => get('/api/v1/users/me', 'hOST: y\r\n'),
  '400 rest: a second token': () => get('/api/v1/users/me', 'authorization: \r\n'),
  '400 graphql: a request to GraphQL without a host': () => 'GET /graphql HTTP/1.1\r\n\r\n',
  '400 graphql: an invalid chunk': () => chunked('/graphql', 'zz\r\n'),
  '400 graphql: a body that is not UTF-8': () => graphql('{"query":"{ viewer { username } } # \xff"}'),
  '400 graphql: a deeply nested body': () => graphql('['.repeat(deep) + ']'.repeat(deep)),
  '400 graphql: deeply nested variables': () =>
    graphql(
      `{"query":"query ($ids: [ID!]!) { nodes(ids: $ids) { id } }","variables":{"ids":${'['.repeat(deep)}${']'.repeat(deep)}}}`,
    ),
  '400 page: a request for a page without a host': () => 'GET /healthz HTTP/1.1\r\n\r\n',
  '404 page: OPTIONS *': () => `OPTIONS * HTTP/1.1\r\n${host()}\r\n`,
  '405 rest: a tunnel': () => `CONNECT x:1 HTTP/1.1\r\n${host()}\r\n`,
  '413 rest: an activation over the limit': () => activate('x'.repeat(64 * 1024 + 1)),
  '413 graphql: a body over the limit': () => graphql('x'.repeat(256 * 1024 + 1)),
  '415 rest: a compressed activation': () => activate('', `${json}Content-Encoding: gzip\r\n`),
  '415 graphql: a compressed body': () => graphql('\x1f\x8b', `${json}Content-Encoding: gzip\r\n`),
  '431 rest: a header of 100 kB': () => get('/api/v1/dtt', `X: ${long}\r\n`),
};

const wrongPaths: Record<string, string> = {
  '404 rest: /api/v1/': '%2e%2e/graphql ../graphql /dtt dtt%2f1 dtt/1/ dtt/1%00/x %',
  '404 rest: /api/v1/dtt/': `${2 ** 31} ${2 ** 53} 1${'0'.repeat(400)}`,
  '404 page: ': '//graphql /graphql/ /%67raphql /__proto__ /api/v10 /;/graphql http://x/y',
};
for (const [name, paths] of Object.entries(wrongPaths))
  for (const path of paths.split(' ')) wrong[name + path] = () => get(`${name.split(': ')[1]}${path}`);

describe('the gateway rejects', () => {
  it.each(Object.entries(wrong))('%s', async (name, bytes) => {
    const [rejection = expect.fail('there was no response')] = await responsesTo(bytes());
    const [, status, envelope] = /^(\d+) (\w+)/.exec(name) ?? [];
    expectError(rejection, Number(status), envelope);
    // RFC 9110, section 15.5.16: which codings the client may use.
    if (rejection.body.includes(messages.bodyEncoded))
      expect(rejection.headers).toMatchObject({ 'accept-encoding': 'identity', connection: 'close' });
  });

  // Otherwise the rest of the body would be read, however long it is, and what follows an ambiguous head could not be trusted.
  const closing: Record<string, () => string> = {
    '413: an activation that announces more than the limit': () =>
      tooLarge(activation(), 'Content-Length: 65537'),
    '413: GraphQL that announces more than the limit': () => tooLarge('/graphql', 'Content-Length: 262145'),
    '413: chunks over the limit': () => chunked(activation(), `10001\r\n${'x'.repeat(0x10001)}\r\n`),
    '400: REST without a host': () => 'GET /api/v1/dtt HTTP/1.1\r\n\r\n',
    '400: another transfer coding': () =>
      chunked(activation(), '0\r\n\r\n').replace('chunked', 'gzip, chunked'),
    '400: a WebSocket by HTTP/1.0': () => get('/graphql', handshake + accept, 'HTTP/1.0'),
    '400: a WebSocket with a body': () =>
      `${get('/graphql', `${handshake}${accept}Content-Length: 5\r\n`)}12345`,
    '400: a WebSocket with chunks': () =>
      `${get('/graphql', `${handshake}${accept}Transfer-Encoding: chunked\r\n`)}0\r\n\r\n`,
    '400: a WebSocket with a second token': () => get('/graphql', `${handshake}${accept}authorization: \r\n`),
  };
  it.each(Object.entries(closing))('%s, and closes the connection', async (name, bytes) => {
    const { socket, ended } = await openRaw(gateway.url);
    socket.write(bytes());
    const responses = parseResponses(await ended());
    expect(responses).toMatchObject([{ status: parseInt(name, 10), headers: { connection: 'close' } }]);
  });

  it('invalid HTTP behind requests, which get their responses first', async () => {
    const responses = await responsesTo(`${get('/api/v1/users/me')}${get('/api/v1/dtt')}secret\r\n\r\n`);
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 400]);
  });
});

describe('the gateway responds to', () => {
  it('an activation and an operation as long as the limit, a byte order mark before JSON, and a body where none is expected', async () => {
    const mark = '\xef\xbb\xbf';
    const longest = activate(`${mark}{"isActive":true}`.padEnd(64 * 1024));
    const coded = `${json}Content-Encoding: Identity\r\n`;
    const operation = graphql((mark + validBody).padEnd(256 * 1024), coded);
    const responses = await responsesTo(longest + operation + post('/healthz', long));
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 405, 200]);
  });

  it('the readers of streams, whose headers no library decides', async () => {
    const failing = '{"query":"subscription { nothing }"}';
    for (const [type, version, more] of [
      ['text/event-stream', 'HTTP/1.1', 'Connection: close\r\n'],
      ['multipart/mixed;subscriptionSpec=1.0', 'HTTP/1.1', offer],
      ['text/event-stream', 'HTTP/1.0', ''],
    ] as const) {
      const { socket, ended } = await openRaw(gateway.url);
      socket.write(
        post('/graphql', failing, `${json}Accept: ${type}\r\n${more}`).replace('HTTP/1.1', version),
      );
      const [head = ''] = (await ended()).split('\r\n\r\n');
      expect(head).toMatch(/^connection: close$/im);
      expect(head).not.toMatch(/keep-alive/i);
      expect(head).toMatch(/^x-accel-buffering: no$/im);
    }
  });

  it('more requests than may wait, of a client that pipelines a few at a time', async () => {
    const { socket, received } = await openRaw(gateway.url);
    for (let count = 50; count < 2 * mostPipelined; count += 50) {
      socket.write(get('/healthz').repeat(50));
      await expect.poll(() => received().match(/HTTP\/1.1 200/g)).toHaveLength(count);
    }
    socket.destroy();
  });

  it('a write, a read and a query of a client that has read a stream, and ends its side after it', async () => {
    for (const bytes of [activate('{"isActive":true}'), get('/api/v1/users/me'), graphql(validBody)]) {
      const { socket, received, ended } = await openRaw(gateway.url);
      socket.write(graphql('{"query":"subscription { nothing }"}', json + events));
      await expect.poll(received).toContain('event: complete');
      socket.end(bytes);
      expect((await ended()).match(/HTTP\/1.1 200/g)).toHaveLength(2);
    }
    // Who has ended their side before a stream begins has left.
    const { socket, ended } = await openRaw(gateway.url);
    socket.end(get('/api/v1/users/me') + get(stream, events));
    await ended();
  });

  it.each(['end', 'destroy', 'resetAndDestroy'] as const)(
    'one stream at a time of a client that pipelines many, and none when it has left by %s',
    async (leave) => {
      const subscribe = graphql(JSON.stringify({ query: subscription }), json + events);
      const { socket, received, ended } = await openRaw(gateway.url);
      socket.write(get(stream, events).repeat(60) + subscribe.repeat(60));
      await expect.poll(received).toContain('data: {');
      // A user may have 50.
      const another = await openRaw(gateway.url);
      another.socket.write(`${subscribe}CONNECT x:1 HTTP/1.1\r\n${host()}\r\n`);
      await expect.poll(another.received).toContain('"data":{"activeDttTemplate":');
      another.socket.resetAndDestroy();
      socket[leave]();
      await ended();
    },
  );

  it('HEAD of a stream with the head alone', async () => {
    const { socket, ended } = await openRaw(gateway.url);
    socket.write(get(stream, `${events}Connection: close\r\n`).replace('GET', 'HEAD'));
    expect(await ended()).toMatch(/^HTTP\/1.1 200 .*\r\ncontent-type: text\/event-stream\r\n.*\r\n\r\n$/is);
  });

  it('no client that sends more and more requests behind a stream', async () => {
    const { socket, ended } = await openRaw(gateway.url);
    socket.write(get(stream, events) + get('/healthz').repeat(mostPipelined + 1));
    expect(await ended()).not.toMatch(/(HTTP\/1.1 200.*){2}/s);
  });

  it.skipIf(!hasWebSockets).each([
    ['a WebSocket', '/graphql', handshake, 101],
    ['a WebSocket at a path that has none', '/healthz', 'Connection: Upgrade\r\nUpgrade: websocket\r\n', 426],
  ])('%s behind requests that have no response yet', async (_, path, headers, status) => {
    const { socket, received } = await openRaw(gateway.url);
    socket.write(post('/graphql', validBody) + get('/api/v1/users/me') + get(path, headers));
    await expect
      .poll(() => received().match(/HTTP\/1.1 \d+/g))
      .toEqual(['200', '200', `${status}`].map((each) => `HTTP/1.1 ${each}`));
    socket.destroy();
  });

  it('an upgrade to an unsupported protocol as to a plain request, and runs nothing that follows on the connection', async () => {
    const { client, pool } = gateway.database;
    const where = { id: alice.userId };
    await client.user.update({ where, data: { activeTemplateId: null } });
    const release = await holdTransaction(pool, 'LOCK TABLE "DttDevice"');
    const { socket, ended } = await openRaw(gateway.url);
    // The parser loses what it reads of the next request together with the end of this one. What follows while this request waits
    // is the body of one whose head was lost.
    socket.write(get('/api/v1/dtt?limit=7', offer) + post('/graphql', validBody).slice(0, -validBody.length));
    await sleep(200);
    socket.write(activate('{"isActive":true}'));
    await sleep(200);
    await release();
    expect(parseResponses(await ended())).toMatchObject([{ status: 200, headers: { connection: 'close' } }]);
    await sleep(200);
    expect(await client.user.findUnique({ where })).toMatchObject({ activeTemplateId: null });
  });
});

// All at the same time, since each takes seconds.
it('an incomplete request gets a 408 after the timeout, or nothing more if it was rejected before', async () => {
  const given = [
    ['a head', 'GET /api/v1/dtt HTTP/1.1\r\nHost: x\r\n', 'rest'],
    ['a body of GraphQL', post('/graphql', validBody).slice(0, -1), 'graphql'],
    ['a body of chunks', chunked('/graphql', '5\r\n{"que\r\n'), 'graphql'],
  ] as const;
  const responses = given.map(async ([name, bytes, envelope]) => {
    const { socket, ended } = await openRaw(gateway.url);
    socket.write(bytes);
    const [rejection, ...others] = parseResponses(await ended());
    expectError(rejection ?? expect.fail(`there was no response to ${name}`), 408, envelope);
    expect([rejection?.headers.connection, others], name).toEqual(['close', []]);
  });
  const rejectedEarly = async () => {
    const { socket, ended } = await openRaw(gateway.url);
    socket.write(`POST /api/v1/dtt HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n`);
    const upload = setInterval(() => socket.write('x'), 20);
    const rejections = parseResponses(await ended());
    clearInterval(upload);
    expect(rejections.map(({ status }) => status)).toEqual([401]);
  };
  await Promise.all([...responses, rejectedEarly()]);
});

it('a new connection from the address of one proxy is served beside many streams, and WebSockets that have a viewer', async () => {
  const other = await gatewayBeside(gateway.database, { maxConnections: 20 });
  const request = () => rest(other, alice.token, '/users/me', { headers: { Connection: 'close' } });
  const many = Array.from({ length: 15 });
  const streams: Events[] = [];
  // One after the other, since a connection without a request may be ended.
  for (const _ of many) {
    streams.push(await subscribe(other, alice.token, `subscription ${viewer}`));
    await streams.at(-1)?.next();
  }
  expect((await request()).status).toBe(200);
  for (const each of streams) each.leave();
  // The core alone has no WebSockets.
  if (!hasWebSockets) return;
  await expect.poll(() => other.connections()).toBe(0);
  for (const _ of many) await connectSocket(other, alice.token);
  expect((await request()).status).toBe(200);
  closeSockets();
  await expect.poll(() => other.connections()).toBe(0);
  for (let count = 0; count < 10; count++) await openSocket(other);
  await expect(request()).rejects.toThrow('fetch failed');
  closeSockets();
});

it('a gateway that closes loses no request on a connection that is used again, and says in the response that it was the last', async () => {
  const closing = new AbortController();
  const slow = { ...timeouts, head: 60_000, request: 60_000, closing: 1_000 };
  const other = await gatewayBeside(gateway.database, { timeouts: slow, closing: closing.signal });
  const { socket, received, ended } = await openRaw(other.url);
  const idle = await openRaw(other.url);
  const activate = post(activation(), '{"isActive":true}');
  for (const each of [socket, idle.socket]) each.write(activate);
  const isThere = async (text: () => string) => expect.poll(text).toContain('scheduleTypeChanged');
  await Promise.all([isThere(received), isThere(idle.received)]);
  closing.abort();
  await sleep(100);
  socket.write(activate);
  const responses = parseResponses(await ended());
  expect(responses.map(({ status, headers }) => [status, headers.connection])).toEqual([
    [200, 'keep-alive'],
    [200, 'close'],
  ]);
  // An idle connection is ended in order.
  const failed = vi.fn();
  idle.socket.on('error', failed);
  expect(parseResponses(await idle.ended())).toHaveLength(1);
  expect(failed).not.toHaveBeenCalled();
});
