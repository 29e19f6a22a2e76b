/** Which headers of a request are relayed to the upstream, and which headers of its response to the client. */

import { once } from 'node:events';
import { createServer, IncomingMessage, type Server, ServerResponse } from 'node:http';
import { type AddressInfo, Socket } from 'node:net';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { formFor } from '../../src/http/compression.ts';
import { type Exchange, innerExchange, openExchange } from '../../src/http/exchange.ts';
import { relay } from '../../src/proxy/forward.ts';
import { createBudget } from '../../src/upstream/budget.ts';
import { nobodyListens } from '../support/exchanges.ts';

let server: Server;
let port: number;
/** The headers of the last request that the upstream received, and those of its next response. */
let received: Readonly<Record<string, unknown>>;
let responded: Record<string, string> = {};

beforeAll(async () => {
  server = createServer((request, response) => {
    received = request.headers;
    response.writeHead(200, responded).end(JSON.stringify('x'.repeat(2_000)));
  });
  port = await portOf(server);
});
afterAll(() => server?.close());

/** A request that a client sends to the gateway, about an account that was read 7 seconds ago. */
function exchangeOf(headers: Readonly<Record<string, string>>, method: string): Exchange {
  const request = new IncomingMessage(new Socket());
  Object.assign(request, { method, url: '/api/v1/x', rawHeaders: Object.entries(headers).flat() });
  const exchange = openExchange(request, new ServerResponse(request), nobodyListens);
  exchange.headers.Age = '7';
  return exchange;
}

/** Options for relaying to the server at this port. */
const optionsFor = (port: number) => ({
  base: `http://127.0.0.1:${port}/api/v1`,
  token: 'alice',
  budget: createBudget(0),
  longest: 5_000,
});

async function portOf(listening: Server): Promise<number> {
  listening.listen(0, '127.0.0.1');
  await once(listening, 'listening');
  // It listens on a port, and not on a pipe.
  return (listening.address() as AddressInfo).port;
}

/** The response to a request with these headers. */
async function relayed(headers: Readonly<Record<string, string>>, method = 'GET') {
  const exchange = exchangeOf(headers, method);
  const response = await relay(exchange, optionsFor(port));
  // The gateway's headers and those of the response are sent together.
  return { response, own: exchange.headers, all: { ...exchange.headers, ...response.headers } };
}

it.each([
  ['is reported as not sent if the upstream refuses the connection', true],
  ['is not reported as not sent if the upstream closes the connection', false],
])('a request %s', async (_, isRefused) => {
  const broken = createServer(({ socket }) => socket.destroy());
  const itsPort = await portOf(broken);
  if (isRefused) await new Promise((resolve) => broken.close(resolve));
  const onNotSent = vi.fn();
  const response = await relay(exchangeOf({}, 'GET'), { ...optionsFor(itsPort), onNotSent });
  broken.close();
  expect(response.status).toBe(502);
  expect(onNotSent).toHaveBeenCalledTimes(isRefused ? 1 : 0);
});

it('a header of a request is relayed unchanged, even if it has the name of a property of all objects', async () => {
  await relayed({ constructor: 'a', ToString: 'b' });
  expect(received).toMatchObject({ constructor: 'a', tostring: 'b' });
});

it('headers of a request about the address of the client, its connection, proxies and credentials are not relayed', async () => {
  await relayed({
    Accept: 'text/plain',
    'X-Own': 'mine',
    Connection: 'keep-alive, X-Hop',
    'X-Hop': '1',
    Authorization: 'Bearer other',
    Cookie: 'a=b',
    Forwarded: 'for=10.1.2.3',
    'X-Forwarded-For': '10.1.2.3',
    'X-Real-IP': '10.1.2.3',
    'X-Client-IP': '10.1.2.3',
    'X-Cluster-Client-IP': '10.1.2.3',
    'True-Client-IP': '10.1.2.3',
    'CF-Connecting-IP': '10.1.2.3',
    'Fastly-Client-IP': '10.1.2.3',
    Via: '1.1 proxy',
  });
  expect(received).toMatchObject({ accept: 'text/plain', 'x-own': 'mine', authorization: 'Bearer alice' });
  expect(JSON.stringify(received)).not.toMatch(/10\.1\.2\.3|proxy|x-hop|a=b|other/);
});

it('the response has each header once, and none about the connection to the upstream or its server', async () => {
  responded = {
    'Content-Type': 'text/plain',
    'Cache-Control': 'public, max-age=3600',
    'X-Own': 'theirs',
    Connection: 'x-hop, keep-alive',
    'X-Hop': 'secret',
    'X-Request-Id': 'theirs',
    Age: '5',
    'Set-Cookie': 'a=b',
    Server: 'theirs',
  };
  const { own, all } = await relayed({});
  const names = Object.keys(all).map((name) => name.toLowerCase());
  expect(names).toHaveLength(new Set(names).size);
  expect(all).toMatchObject({
    'content-type': 'text/plain',
    'cache-control': 'public, max-age=3600',
    'x-own': 'theirs',
    'X-Request-Id': own['X-Request-Id'],
  });
  for (const name of ['age', 'x-hop', 'set-cookie', 'server']) expect(names).not.toContain(name);
  expect(all['X-Request-Id']).not.toBe('theirs');
});

it('the response may not be cached, unless the upstream allows it', async () => {
  responded = {};
  const { all } = await relayed({});
  expect(all).toMatchObject({ 'cache-control': 'private, no-store', Vary: 'Authorization' });
});

it('the response is not compressed by the gateway, since its ETag would be wrong then', async () => {
  responded = { 'Content-Type': 'application/json', ETag: '"theirs"' };
  const { response } = await relayed({});
  const request = { headers: { 'accept-encoding': 'gzip' } };
  // Only these fields of the exchange are read.
  expect(await formFor({ endpoint: 'rest', request } as unknown as Exchange, response)).toBe(response);
});

it('the response to HEAD has the Content-Length of GET, and none if the upstream states that of an encoded body', async () => {
  const lengthOf = async () => Object(await relayed({}, 'HEAD')).response.headers['Content-Length'];
  responded = { 'Content-Length': '2002' };
  expect(await lengthOf()).toBe(2_002);
  responded = { 'Content-Length': '45', 'Content-Encoding': 'gzip' };
  expect(await lengthOf()).toBeUndefined();
  responded = {};
});

it.each([undefined, Buffer.from('{"isActive":true}')])(
  'a request inside another one is relayed with its own body, not that of the outer request: %s',
  async (body) => {
    // The outer request never ends, like one whose body was read before.
    const request = new IncomingMessage(new Socket());
    Object.assign(request, { method: 'POST', url: '/mcp', headers: { host: 'a', 'content-length': '999' } });
    const outer = openExchange(request, new ServerResponse(request), nobodyListens);
    const inner = innerExchange(outer, { method: 'POST', target: '/api/v1/x', body });
    const { port } = server.address() as AddressInfo;
    const base = `http://127.0.0.1:${port}/api/v1`;
    const { status } = await relay(inner, { base, token: 'alice', budget: createBudget(0), longest: 5_000 });
    expect(status).toBe(200);
    expect(received).toMatchObject({
      accept: 'application/json',
      'content-length': String(body?.length ?? 0),
    });
    expect(received['content-type']).toBe(body && 'application/json');
  },
);
