import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createDeadlines } from '../../src/http/deadlines.ts';
import { type Outcome, openExchange } from '../../src/http/exchange.ts';
import { nobodyListens } from '../support/exchanges.ts';

describe('the deadline of a request', () => {
  let log: string[];
  let server: Server;
  let url: string;
  beforeEach(async () => {
    log = [];
    const deadlines = createDeadlines(50, ({ response }) => {
      log.push('late');
      response.writeHead(500).end();
    });
    const listener = { ...nobodyListens, ended: ({ exchange }: Outcome) => deadlines.end(exchange) };
    server = createServer((incoming, response) => {
      deadlines.begin(openExchange(incoming, response, listener));
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

describe('the timer of a request', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
  afterEach(() => void vi.useRealTimers());

  const open = () => {
    const incoming = { headers: {}, url: '/', complete: true } as IncomingMessage;
    return openExchange(incoming, new ServerResponse(incoming), nobodyListens);
  };

  it('fires once, that long after it was begun first, unless it is ended', () => {
    const late: unknown[] = [];
    const { begin, end } = createDeadlines(100, (exchange) => late.push(exchange));
    const [first, second] = [open(), open()];
    for (const exchange of [first, second]) begin(exchange);
    vi.advanceTimersByTime(50);
    end(first);
    begin(second);
    vi.advanceTimersByTime(49);
    expect(late).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(late).toEqual([second]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('is not started for a request whose client has left already', () => {
    const { begin } = createDeadlines(100, () => expect.unreachable());
    const exchange = open();
    exchange.response.emit('close');
    begin(exchange);
    expect(vi.getTimerCount()).toBe(0);
  });
});
