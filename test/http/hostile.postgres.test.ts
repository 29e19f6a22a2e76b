/** Hostile HTTP over raw sockets: always a well-formed 4xx in the right envelope, and nothing left behind. */

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Account, createAccount } from '../support/accounts.ts';
import { openBeside, openTestGateway, rest, type TestGateway } from '../support/gateway.ts';
import { openRaw, parseResponses, type RawResponse } from '../support/rawHttp.ts';

const timeouts = { head: 700, request: 1_500, silence: 5_000, idle: 5_000, closing: 300 };

let gateway: TestGateway;
let alice: Account;
beforeAll(async () => {
  gateway = await openTestGateway(undefined, { timeouts });
  alice = await createAccount(gateway.database.client, 'alice');
});
afterAll(() => gateway?.close());

let logged: number;
beforeEach(() => {
  logged = gateway.log.length;
});

// After each case, whatever it was: the gateway answers, has logged no error, and has no connection left.
afterEach(async () => {
  const { status } = await rest(gateway, alice.token, '/users/me', { headers: { Connection: 'close' } });
  expect(status).toBe(200);
  expect(gateway.log.slice(logged)).toEqual([]);
  await expect.poll(() => gateway.connections(), { interval: 10, timeout: 4_000 }).toBe(0);
});

it('a connection on which nothing happens for too long is dropped', async () => {
  const impatient = await openTestGateway(await openBeside(gateway.database), {
    timeouts: { ...timeouts, silence: 300 },
  });
  const reading = fetch(`${impatient.url}/graphql`, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      Accept: 'text/event-stream',
      Authorization: `Bearer ${alice.token}`,
    },
    body: JSON.stringify({ query: 'subscription { activeDttTemplate { name } }' }),
  }).then((response) => response.text());
  // On a busy machine it may be dropped before the response begins.
  await expect(reading).rejects.toThrow();
  await impatient.close();
});

type Envelope = 'rest' | 'graphql' | 'page';

const host = () => `Host: x\r\nAuthorization: Bearer ${alice.token}\r\n`;
const json = 'Content-Type: application/json\r\n';
const right = '{"query":"{ viewer { username } }"}';

const get = (target: string, headers = '', version = 'HTTP/1.1') =>
  `GET ${target} ${version}\r\n${host()}${headers}\r\n`;
/** Latin-1 throughout, so that a character is a byte. */
const post = (target: string, body: string, headers = json) =>
  `POST ${target} HTTP/1.1\r\n${host()}${headers}Content-Length: ${body.length}\r\n\r\n${body}`;
const chunked = (target: string, chunks: string) =>
  `POST ${target} HTTP/1.1\r\n${host()}${json}Transfer-Encoding: chunked\r\n\r\n${chunks}`;
/** The head of a request whose body is announced, and never comes. */
const tooLarge = (target: string, length: string) =>
  `POST ${target} HTTP/1.1\r\n${host()}${json}${length}\r\n\r\n`;
/** Of a protocol that the gateway does not speak. */
const offer = 'Connection: upgrade\r\nUpgrade: h2c\r\n';
const activation = () => `/api/v1/dtt/templates/${alice.dttTemplates[0]}`;

/** Checks that the response is an error in the words of its API. */
function expectError({ status, headers, body }: RawResponse, expected: number, envelope: Envelope): void {
  expect({ status, body }).toMatchObject({ status: expected });
  expect(headers['x-content-type-options'] ?? headers.connection).toMatch(/nosniff|close/);
  if (envelope === 'page') {
    expect(headers['content-type']).toBe('text/plain; charset=utf-8');
    expect(body).toMatch(/^[^\n]+\n$/);
    return;
  }
  expect(headers['content-type']).toBe('application/json; charset=utf-8');
  expect(headers['cache-control']).toBe('no-store');
  const error = expect.stringMatching(/./);
  expect(JSON.parse(body)).toEqual(
    envelope === 'rest'
      ? { ok: false, error }
      : {
          errors: [
            expect.objectContaining({
              message: error,
              extensions: expect.objectContaining({ code: expect.stringMatching(/^[A-Z_]+$/) }),
            }),
          ],
        },
  );
}

/** Sends the bytes and asks to close behind them; the answers, once the gateway has closed. */
async function responsesTo(bytes: string, pieces = 1): Promise<RawResponse[]> {
  const { socket, ended } = await openRaw(gateway.url);
  const size = Math.ceil(bytes.length / pieces);
  for (let at = 0; at < bytes.length; at += size) {
    socket.write(bytes.slice(at, at + size), 'latin1');
    if (pieces > 1) await sleep(1);
  }
  socket.write(`GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
  return parseResponses(await ended());
}

const long = 'x'.repeat(100_000);
const deep = 50_000;

describe('is refused', () => {
  it.each<[string, () => string, number, Envelope]>([
    ['no HTTP at all', () => '\x16\x03\x01\x02\x00\x01', 400, 'rest'],
    ['HTTP/2 without asking', () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400, 'rest'],
    ['a version that there is not', () => get('/api/v1/dtt', '', 'HTTP/9.9'), 400, 'rest'],
    ['a method that there is not', () => `SECRET /api/v1/dtt HTTP/1.1\r\n${host()}\r\n`, 400, 'rest'],
    ['a request without a host', () => 'GET /api/v1/dtt HTTP/1.1\r\n\r\n', 400, 'rest'],
    ['the same of GraphQL', () => 'GET /graphql HTTP/1.1\r\n\r\n', 400, 'graphql'],
    ['the same of a page', () => 'GET /healthz HTTP/1.1\r\n\r\n', 400, 'page'],
    ...['Host: x', 'hOST: y', 'Authorization: Bearer x', 'authorization: '].flatMap((header) =>
      (['/api/v1/users/me', '/graphql', '/healthz'] as const).map(
        (path, index): [string, () => string, number, Envelope] => [
          `a second "${header}" at ${path}`,
          () => get(path, `${header}\r\n`),
          400,
          (['rest', 'graphql', 'page'] as const)[index] ?? 'page',
        ],
      ),
    ),
    ['a NUL in the path', () => get('/api/v1/\0'), 400, 'rest'],
    ['a path of bytes', () => get('/api/v1/\xff'), 400, 'rest'],
    ['a space in the path', () => get('/api/v1/dtt /1'), 400, 'rest'],
    ['a NUL in a header', () => get('/api/v1/dtt', 'X: a\0b\r\n'), 400, 'rest'],
    ['a header without a colon', () => get('/api/v1/dtt', 'secret\r\n'), 400, 'rest'],
    ['a folded header', () => get('/api/v1/dtt', 'X: a\r\n b\r\n'), 400, 'rest'],
    ['a path of 100 kB', () => get(`/api/v1/${long}`), 431, 'rest'],
    ['a query of 100 kB', () => get(`/graphql?query=${long}`), 431, 'rest'],
    ['a header of 100 kB', () => get('/api/v1/dtt', `X: ${long}\r\n`), 431, 'rest'],
    ['10,000 headers', () => get('/api/v1/dtt', 'X: y\r\n'.repeat(10_000)), 431, 'rest'],
    [
      'a token of 15 kB',
      () => `GET /api/v1/dtt HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${long.slice(0, 15_000)}\r\n\r\n`,
      401,
      'rest',
    ],
    ['two lengths', () => post('/graphql', right, `${json}Content-Length: 1\r\n`), 400, 'rest'],
    ['a length that is none', () => get('/graphql', 'Content-Length: -1\r\n'), 400, 'rest'],
    [
      'a length beyond all numbers',
      () => get('/api/v1/dtt', `Content-Length: 1${'0'.repeat(400)}\r\n`),
      400,
      'rest',
    ],
    [
      'a length and chunks',
      () => post('/graphql', right, `${json}Transfer-Encoding: chunked\r\n`),
      400,
      'rest',
    ],
    ['a coding that there is not', () => get('/graphql', 'Transfer-Encoding: secret\r\n'), 400, 'graphql'],
    ['a chunk that is none', () => chunked('/graphql', 'zz\r\n'), 400, 'graphql'],
    ['the same of an activation', () => chunked(activation(), 'zz\r\n'), 400, 'rest'],
    ['a chunk beyond all numbers', () => chunked('/graphql', `${'f'.repeat(40)}\r\n`), 400, 'graphql'],
    ['a tunnel', () => `CONNECT x:1 HTTP/1.1\r\n${host()}\r\n`, 405, 'rest'],
    ['TRACE of REST', () => `TRACE /api/v1/dtt HTTP/1.1\r\n${host()}\r\n`, 405, 'rest'],
    ['TRACE of GraphQL', () => `TRACE /graphql HTTP/1.1\r\n${host()}\r\n`, 405, 'graphql'],
    ['OPTIONS of nothing', () => `OPTIONS * HTTP/1.1\r\n${host()}\r\n`, 404, 'page'],
    ['another method of GraphQL', () => `DELETE /graphql HTTP/1.1\r\n${host()}\r\n`, 405, 'graphql'],
    ...[
      '/api/v1/%2e%2e/graphql',
      '/api/v1/../graphql',
      '/api/v1//dtt',
      '/api/v1/dtt%2f1',
      '/api/v1/dtt/1/',
      '/api/v1/dtt/1%00/x',
      '/api/v1/%',
    ].map((path): [string, () => string, number, Envelope] => [
      `the path ${path}`,
      () => get(path),
      404,
      'rest',
    ]),
    ...[
      '//graphql',
      '/graphql/',
      '/%67raphql',
      '/__proto__',
      '/constructor',
      '/api/v10',
      '/;/graphql',
      'http://x/y',
    ].map((path): [string, () => string, number, Envelope] => [
      `the path ${path}`,
      () => get(path),
      404,
      'page',
    ]),
    ...[
      '1e3',
      '0x10',
      '01',
      '+1',
      '%201',
      '1%20',
      '-0',
      '1_0',
      '%EF%BC%91',
      '%D9%A1',
      'NaN',
      '__proto__',
      'null',
      '%00',
    ].map((id): [string, () => string, number, Envelope] => [
      `the id ${id}`,
      () => get(`/api/v1/dtt/${id}`),
      400,
      'rest',
    ]),
    ...[2 ** 31, 2 ** 53, `1${'0'.repeat(400)}`].map((id): [string, () => string, number, Envelope] => [
      `the id ${id}`,
      () => get(`/api/v1/dtt/${id}`),
      404,
      'rest',
    ]),
    ['a body over the limit', () => post(activation(), 'x'.repeat(64 * 1024 + 1)), 413, 'rest'],
    ['the same of GraphQL', () => post('/graphql', 'x'.repeat(256 * 1024 + 1)), 413, 'graphql'],
    [
      'chunks over the limit',
      () => chunked(activation(), `fffff\r\n${'x'.repeat(0xfffff)}\r\n0\r\n\r\n`),
      413,
      'rest',
    ],
    ['no body', () => post('/graphql', ''), 400, 'graphql'],
    ['a body cut short', () => post('/graphql', right.slice(0, -1)), 400, 'graphql'],
    [
      'a body that is not UTF-8',
      () => post('/graphql', '{"query":"{ viewer { username } } # \xff"}'),
      400,
      'graphql',
    ],
    ['the same of an activation', () => post(activation(), '{"isActive":true,"x":"\xff"}'), 400, 'rest'],
    [
      'a body in UTF-16',
      () => post('/graphql', Buffer.from(right, 'utf16le').toString('latin1')),
      400,
      'graphql',
    ],
    ['a deep body', () => post('/graphql', '['.repeat(deep) + ']'.repeat(deep)), 400, 'graphql'],
    ['a deep body without an end', () => post('/graphql', '{"a":'.repeat(deep)), 400, 'graphql'],
    ['the same of an activation', () => post(activation(), '['.repeat(deep)), 400, 'rest'],
    [
      'deep variables',
      () =>
        post(
          '/graphql',
          `{"query":"query ($ids: [ID!]!) { nodes(ids: $ids) { id } }","variables":{"ids":${'['.repeat(deep)}${']'.repeat(deep)}}}`,
        ),
      400,
      'graphql',
    ],
    ['a list of requests', () => post('/graphql', `[${right}]`), 400, 'graphql'],
    ['null for a request', () => post('/graphql', 'null'), 400, 'graphql'],
    ['a query that is no text', () => post('/graphql', '{"query":{}}'), 400, 'graphql'],
    [
      'variables that are no object',
      () => post('/graphql', '{"query":"{a}","variables":[]}'),
      400,
      'graphql',
    ],
    [
      'variables in the URL that are no JSON',
      () => get('/graphql?query={viewer{id}}&variables=%7B'),
      400,
      'graphql',
    ],
    ['a body of text', () => post('/graphql', right, 'Content-Type: text/plain\r\n'), 415, 'graphql'],
    ['a body of nobody knows what', () => post('/graphql', right, ''), 415, 'graphql'],
    [
      'an activation of text',
      () => post(activation(), '{"isActive":true}', 'Content-Type: text/plain\r\n'),
      400,
      'rest',
    ],
    [
      'a body that is zipped',
      () => post('/graphql', '\x1f\x8b\x08\0\0', `${json}Content-Encoding: gzip\r\n`),
      415,
      'graphql',
    ],
    [
      'an activation that is zipped',
      () => post(activation(), '{"isActive":true}', `${json}Content-Encoding: gzip\r\n`),
      415,
      'rest',
    ],
    [
      'a body in a coding by no name',
      () => post('/graphql', right, `${json}Content-Encoding: aws-chunked\r\n`),
      415,
      'graphql',
    ],
    ['nothing acceptable', () => post('/graphql', right, `${json}Accept: image/png\r\n`), 406, 'graphql'],
  ])('%s', async (_, bytes, status, envelope) => {
    const [refusal] = await responsesTo(bytes());
    expectError(refusal ?? expect.fail('there was no answer'), status, envelope);
  });

  // What is left of a body would be read, however much it is, and what comes behind a doubtful head is doubtful too.
  it.each<[string, () => string, number]>([
    [
      'an activation that announces more than the limit',
      () => tooLarge(activation(), 'Content-Length: 65537'),
      413,
    ],
    ['GraphQL that announces more than the limit', () => tooLarge('/graphql', 'Content-Length: 262145'), 413],
    [
      'an activation in chunks over the limit',
      () => chunked(activation(), `10001\r\n${'x'.repeat(0x10001)}\r\n`),
      413,
    ],
    [
      'GraphQL in chunks over the limit',
      () => chunked('/graphql', `40001\r\n${'x'.repeat(0x40001)}\r\n`),
      413,
    ],
    ['REST without a host', () => 'GET /api/v1/dtt HTTP/1.1\r\n\r\n', 400],
    ['GraphQL without a host', () => 'GET /graphql HTTP/1.1\r\n\r\n', 400],
    ['a page without a host', () => 'GET / HTTP/1.1\r\n\r\n', 400],
  ])('%s, and the connection closed', async (_, bytes, status) => {
    const { socket, ended } = await openRaw(gateway.url);
    socket.write(bytes());
    const [refusal, ...others] = parseResponses(await ended());
    expect(refusal).toMatchObject({ status, headers: { connection: 'close' } });
    expect(others).toEqual([]);
  });

  it('a mistake behind a request, which is answered first', async () => {
    const responses = await responsesTo(`${get('/api/v1/users/me')}${get('/api/v1/dtt')}secret\r\n\r\n`);
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 400]);
  });
});

describe('is answered', () => {
  it.each<[string, () => string, number[]]>([
    [
      'many requests at once',
      () => get('/api/v1/users/me').repeat(50),
      Array.from({ length: 50 }, () => 200),
    ],
    ['a body that is waited for', () => post('/graphql', right, `${json}Expect: 100-continue\r\n`), [200]],
    ['an expectation that nobody knows', () => post('/graphql', right, `${json}Expect: secret\r\n`), [200]],
    ['the absolute form', () => get('http://elsewhere/api/v1/users/me'), [200]],
    ['a body of all that is allowed', () => post(activation(), '{"isActive":true}'.padEnd(64 * 1024)), [200]],
    ['the same of GraphQL', () => post('/graphql', right.padEnd(256 * 1024)), [200]],
    ['a body where there is none', () => post('/healthz', long) + get('/api/v1/users/me'), [405, 200]],
    [
      'chunks with an extension',
      () => chunked('/graphql', `${right.length.toString(16)};a=b\r\n${right}\r\n0\r\n\r\n`),
      [200],
    ],
  ])('%s', async (_, bytes, statuses) => {
    const responses = await responsesTo(bytes());
    expect(responses.map(({ status }) => status)).toEqual([...statuses, 200]);
  });

  it('a request in many pieces', async () => {
    const bytes = post('/graphql', right);
    const responses = await responsesTo(bytes, 30);
    expect(responses.map(({ status }) => status)).toEqual([200, 200]);
  });

  it('HTTP/1.0, and the connection closed', async () => {
    const { socket, ended } = await openRaw(gateway.url);
    socket.write(get('/api/v1/users/me', '', 'HTTP/1.0'));
    const [response] = parseResponses(await ended());
    expect(response).toMatchObject({ status: 200, headers: { connection: 'close' } });
  });

  it.each([
    [
      'a WebSocket',
      '/graphql',
      'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n',
      101,
    ],
    ['a WebSocket that there is not', '/healthz', 'Connection: Upgrade\r\nUpgrade: websocket\r\n', 426],
  ])('%s behind requests that have no response yet', async (_, path, headers, status) => {
    const { socket, received } = await openRaw(gateway.url);
    socket.write(post('/graphql', right) + get('/api/v1/users/me') + get(path, headers));
    await expect
      .poll(() => received().match(/HTTP\/1.1 \d+/g))
      .toEqual(['200', '200', `${status}`].map((each) => `HTTP/1.1 ${each}`));
    socket.destroy();
  });

  it('a tunnel behind a request, which gets its own response', async () => {
    const { socket, ended } = await openRaw(gateway.url);
    socket.write(`${post('/graphql', right)}CONNECT x:1 HTTP/1.1\r\n${host()}\r\n`);
    expect(parseResponses(await ended()).map(({ status }) => status)).toEqual([200, 405]);
  });

  it('an upgrade that there is not, as a plain request, with whose response the connection ends', async () => {
    const { socket, ended } = await openRaw(gateway.url);
    // The parser loses what it reads of the next request together with the end of this one.
    socket.write(get('/api/v1/users/me', offer) + get('/api/v1/users/me').slice(0, -2));
    const responses = parseResponses(await ended());
    expect(responses).toEqual([expect.objectContaining({ status: 200 })]);
    expect(responses[0]?.headers.connection).toBe('close');
  });

  it('an upgrade that there is not, and runs nothing that follows on the connection', async () => {
    const { socket, received } = await openRaw(gateway.url);
    const subscription = '{"query":"subscription { activeDttTemplate { name } }"}';
    // What follows is the body of a request whose head was lost.
    socket.write(
      post('/graphql', subscription, `${json}Accept: text/event-stream\r\n${offer}`) +
        post('/graphql', right).slice(0, -right.length),
    );
    await expect.poll(received).toContain('event: next');
    const version = gateway.responseCache.versionOf(alice.userId);
    socket.write(post(activation(), '{"isActive":true}'));
    await sleep(300);
    expect(gateway.responseCache.versionOf(alice.userId)).toBe(version);
    socket.destroy();
  });
});

describe('is waited for, but not for ever:', () => {
  // Side by side, since each waits for seconds.
  it('what never comes', async () => {
    const given: [string, string, Envelope][] = [
      ['a head', 'GET /api/v1/dtt HTTP/1.1\r\nHost: x\r\n', 'rest'],
      ['a body', post(activation(), '{"isActive":true}').slice(0, -1), 'rest'],
      ['a body of GraphQL', post('/graphql', right).slice(0, -1), 'graphql'],
      ['a body of chunks', chunked('/graphql', '5\r\n{"que\r\n'), 'graphql'],
    ];
    const responses = given.map(async ([name, bytes, envelope]) => {
      const { socket, ended } = await openRaw(gateway.url);
      socket.write(bytes);
      const [refusal, ...others] = parseResponses(await ended());
      expectError(refusal ?? expect.fail(`there was no answer to ${name}`), 408, envelope);
      expect(others, name).toEqual([]);
    });
    const refusedLongAgo = async () => {
      const { socket, ended } = await openRaw(gateway.url);
      socket.write(`POST /api/v1/dtt HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n`);
      const upload = setInterval(() => socket.write('x'), 20);
      const httpErrors = parseResponses(await ended());
      clearInterval(upload);
      expect(httpErrors.map(({ status }) => status)).toEqual([401]);
    };
    await Promise.all([...responses, refusedLongAgo()]);
  });
});

describe('nothing is left of', () => {
  it.each<[string, () => string]>([
    ['a connection that says nothing', () => ''],
    ['a head cut off', () => get('/api/v1/dtt').slice(0, -4)],
    ['a body cut off', () => post(activation(), '{"isActive":true}').slice(0, -1)],
    ['a body of GraphQL cut off', () => post('/graphql', right).slice(0, -1)],
    ['a request whose answer nobody reads', () => get('/api/v1/dtt/sessions')],
    [
      'a subscription',
      () =>
        post(
          '/graphql',
          '{"query":"subscription { devices { nodes { id } } }"}',
          `${json}Accept: text/event-stream\r\n`,
        ),
    ],
  ])('%s', async (_, bytes) => {
    const { socket } = await openRaw(gateway.url);
    socket.write(bytes());
    await sleep(20);
    socket.resetAndDestroy();
  });
});

describe('closing', () => {
  it.each<[string, () => string, number | undefined]>([
    [
      'an upload without an end',
      () => `POST ${activation()} HTTP/1.1\r\n${host()}${json}Transfer-Encoding: chunked\r\n\r\n`,
      408,
    ],
    ['a head without an end', () => `GET /healthz HTTP/1.1\r\nHost: x\r\n`, undefined],
    [
      'a body that was refused long ago',
      () => 'POST /api/v1/dtt HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n',
      401,
    ],
  ])('is not held up by %s', async (_, bytes, status) => {
    const closing = new AbortController();
    const slow = { ...timeouts, head: 60_000, request: 60_000 };
    const other = await openTestGateway(await openBeside(gateway.database), {
      timeouts: slow,
      closing: closing.signal,
    });
    const { socket, ended } = await openRaw(other.url);
    socket.write(bytes());
    const upload = setInterval(() => status === 408 && socket.write('1\r\nx\r\n'), 20);
    await sleep(50);
    const began = performance.now();
    closing.abort();
    const responses = parseResponses(await ended());
    clearInterval(upload);
    expect(responses.map((response) => response.status)).toEqual(status === undefined ? [] : [status]);
    expect(performance.now() - began).toBeGreaterThan(200);
    expect(performance.now() - began).toBeLessThan(2_000);
    await other.close();
  });
});
