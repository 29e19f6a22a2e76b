import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createDeadlines } from '../../src/http/deadlines.ts';
import { openExchange } from '../../src/http/exchange.ts';
import { createUnderway, type Underway } from '../../src/http/underway.ts';
import { listenFor } from '../support/exchanges.ts';

describe('the deadline of a request', () => {
  let log: string[];
  let server: Server;
  let url: string;
  beforeEach(async () => {
    log = [];
    const underway = createUnderway();
    const deadlines = createDeadlines(underway, 50, ({ response }) => {
      log.push('late');
      response.writeHead(500).end();
    });
    server = createServer((incoming, response) => {
      deadlines.begin(openExchange(incoming, response, listenFor(underway)));
      if (incoming.url === '/body') incoming.resume().on('end', () => response.end());
      else if (incoming.url !== '/no-response') response.write('some');
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    // A server that listens on a port has an address of this type.
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });
  const ask = async (path = '/') => (await fetch(`${url}${path}`)).status;

  it('has a response sent if none has begun by then, and changes nothing otherwise', async () => {
    expect(await ask('/no-response')).toBe(500);
    expect(log).toEqual(['late']);
    expect(await ask()).toBe(200);
    await sleep(100);
    expect(log).toHaveLength(1);
  });

  it('does not apply once the client has closed the connection', async () => {
    server.once('request', (_incoming, response) => response.destroy());
    await expect(ask('/no-response')).rejects.toThrow();
    await sleep(100);
    expect(log).toEqual([]);
  });

  it('does not include the time in which the client sends the body', async () => {
    const sending = request(`${url}/body`, { method: 'POST' });
    const responded = once(sending, 'response');
    sending.write('slowly');
    // Several times as long as a response may take.
    await sleep(250);
    sending.end();
    const [response] = await responded;
    expect(response.statusCode).toBe(200);
    expect(log).toEqual([]);
  });
});

describe('the timer that all requests share', () => {
  let underway: Underway;
  beforeEach(() => {
    underway = createUnderway();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  });
  afterEach(() => void vi.useRealTimers());

  const open = () => {
    const incoming = { headers: {}, url: '/', complete: true } as IncomingMessage;
    return openExchange(incoming, new ServerResponse(incoming), listenFor(underway));
  };

  it('fires for each request at its deadline, whether or not earlier requests have ended', () => {
    const late: unknown[] = [];
    const { begin, end } = createDeadlines(underway, 100, (exchange) => late.push(exchange));
    const [first, second, third] = [open(), open(), open()];
    begin(first);
    vi.advanceTimersByTime(30);
    begin(second);
    begin(third);
    expect(vi.getTimerCount()).toBe(1);
    end(first);
    vi.advanceTimersByTime(99);
    expect(late).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(late).toEqual([second, third]);
    // No request is left.
    expect(vi.getTimerCount()).toBe(0);
    begin(first);
    vi.advanceTimersByTime(100);
    expect(late).toEqual([second, third, first]);
    // A request also ends without a call of `end`, when its connection closes.
    const fourth = open();
    begin(fourth);
    fourth.response.emit('close');
    vi.advanceTimersByTime(100);
    expect(late).toHaveLength(3);
  });

  it('is not started for a request whose client has left already', () => {
    const { begin } = createDeadlines(underway, 100, () => expect.unreachable());
    const exchange = open();
    exchange.response.emit('close');
    begin(exchange);
    expect(vi.getTimerCount()).toBe(0);
  });
});
