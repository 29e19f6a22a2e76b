/** Timeouts of connections, and errors of the HTTP parser, with fake timers. HTTP over real sockets is tested in hostile.postgres.test.ts. */

import { EventEmitter } from 'node:events';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { timeouts as usual, watchConnections } from '../../src/http/connections.ts';
import type { Exchange } from '../../src/http/exchange.ts';

const timeouts = { head: 1, request: 2, silence: 3, idle: 3, closing: 1_000 };

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'setTimeout', 'clearTimeout', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** The parts of a server that watchConnections uses. */
function open() {
  const server = Object.assign(new EventEmitter(), { headersTimeout: 0, requestTimeout: 0, timeout: 0 });
  const closing = new AbortController();
  const connections = watchConnections(server as unknown as Server, timeouts, closing.signal);
  /** The parts of a socket that it uses. */
  const connect = () => {
    const socket = Object.assign(new EventEmitter(), {
      writable: true,
      written: '',
      end: vi.fn(),
      resume: vi.fn(),
      destroy: vi.fn(),
    });
    server.emit('connection', socket);
    return socket;
  };
  type FakeSocket = ReturnType<typeof connect>;
  const begin = (socket: FakeSocket, request: object, response: object = {}) => {
    const outgoing = Object.assign(new EventEmitter(), {
      headersSent: false,
      writableEnded: false,
      writableFinished: false,
      writeHead: vi.fn().mockReturnThis(),
      end: vi.fn(),
      ...response,
    });
    const incoming = { socket: socket as unknown as Socket, headers: {}, complete: true, ...request };
    // The parts of an exchange that it uses.
    const exchange = { endpoint: 'rest', headers: {}, request: incoming, response: outgoing };
    connections.begin(exchange as unknown as Exchange);
    return outgoing;
  };
  return { server, closing, connect, begin };
}

it('sets the timeouts of the server, which have these defaults', () => {
  expect(open().server).toMatchObject({ headersTimeout: 1, requestTimeout: 2, timeout: 3 });
  expect(usual).toEqual({ head: 10_000, request: 30_000, silence: 120_000, idle: 75_000, closing: 5_000 });
});

describe('when the gateway closes', () => {
  it('destroys the connections that wait for no response after the closing timeout', () => {
    const { closing, connect, begin } = open();
    const silent = connect();
    const responded = connect();
    begin(responded, {}, { headersSent: true, writableEnded: true });
    const streaming = connect();
    begin(streaming, { complete: false }, { headersSent: true });
    closing.abort();
    vi.advanceTimersByTime(timeouts.closing - 1);
    for (const socket of [silent, responded, streaming]) expect(socket.destroy).not.toHaveBeenCalled();
    vi.advanceTimersByTime(101);
    for (const socket of [silent, responded, streaming]) expect(socket.destroy).toHaveBeenCalled();
  });

  it('responds 408 after the closing timeout to a client that has sent half of a request', () => {
    const { closing, connect, begin } = open();
    const socket = connect();
    const { writeHead } = begin(socket, { complete: false });
    closing.abort();
    vi.advanceTimersByTime(timeouts.closing + 100);
    expect(writeHead).toHaveBeenCalledWith(408, expect.arrayContaining(['Connection', 'close']));
  });

  it('leaves a connection open that waits for a response, however long it takes', () => {
    const { closing, connect, begin } = open();
    const socket = connect();
    // Of several requests on a connection, the last one counts.
    begin(socket, {}, { headersSent: true, writableEnded: true });
    const { writeHead } = begin(socket, {});
    closing.abort();
    vi.advanceTimersByTime(10 * timeouts.closing);
    expect(writeHead).not.toHaveBeenCalled();
    expect(socket.destroy).not.toHaveBeenCalled();
  });

  it('no longer checks a connection that its client has closed', () => {
    const { closing, connect } = open();
    const socket = connect();
    socket.emit('close');
    closing.abort();
    vi.advanceTimersByTime(10 * timeouts.closing);
    expect(socket.destroy).not.toHaveBeenCalled();
  });

  it('stops checking the connections once the server has closed', () => {
    const { server, closing } = open();
    closing.abort();
    expect(vi.getTimerCount()).toBe(1);
    server.emit('close');
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('a message that is not valid HTTP', () => {
  const fail = (server: EventEmitter, socket: object, code = 'HPE_INVALID_METHOD') =>
    server.emit('clientError', Object.assign(new Error(), { code }), socket);

  it.each([
    ['HPE_HEADER_OVERFLOW', '431 Request Header Fields Too Large'],
    ['ERR_HTTP_REQUEST_TIMEOUT', '408 Request Timeout'],
    ['HPE_INVALID_METHOD', '400 Bad Request'],
    ['ECONNRESET', '400 Bad Request'],
  ])('gets an error response on a connection without a request: %s', (code, status) => {
    const { server, connect } = open();
    const socket = connect();
    fail(server, socket, code);
    expect(socket.end).toHaveBeenCalledTimes(1);
    const [head = '', body = ''] = String(socket.end.mock.calls[0]?.[0]).split('\r\n\r\n');
    const [start, ...headers] = head.split('\r\n');
    expect(start).toBe(`HTTP/1.1 ${status}`);
    expect(headers).toContain('Connection: close');
    expect(headers).toContain(`Content-Length: ${body.length}`);
    expect(headers).toContainEqual(expect.stringMatching(/^Date: \w{3}, \d\d \w{3} \d{4} .* GMT$/));
    expect(JSON.parse(body)).toEqual({ ok: false, error: expect.any(String) });
  });

  it('has its connection destroyed a second after the error response, unless the client closes it first', () => {
    const { server, connect } = open();
    const [staying, leaving] = [connect(), connect()];
    for (const socket of [staying, leaving]) {
      fail(server, socket);
      expect(socket.resume).toHaveBeenCalled();
    }
    leaving.emit('close');
    vi.advanceTimersByTime(999);
    expect(staying.destroy).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(staying.destroy).toHaveBeenCalled();
    expect(leaving.destroy).not.toHaveBeenCalled();
  });

  it('gets no response on a connection that cannot be written to', () => {
    const { server, connect } = open();
    const socket = Object.assign(connect(), { writable: false });
    fail(server, socket);
    expect(socket.end).not.toHaveBeenCalled();
  });

  it('gets its error response after the response to the request before it', () => {
    const { server, connect, begin } = open();
    const socket = connect();
    const response = begin(socket, {});
    fail(server, socket);
    expect(socket.end).not.toHaveBeenCalled();
    response.emit('finish');
    expect(socket.end).toHaveBeenCalledTimes(1);
    // At once if the response to the request is already sent.
    begin(socket, {}, { writableFinished: true });
    fail(server, socket);
    expect(socket.end).toHaveBeenCalledTimes(2);
  });

  it('in the body of a request gets an error response, or has the connection destroyed if a response has begun', () => {
    const { server, connect, begin } = open();
    const socket = connect();
    const { writeHead } = begin(socket, { complete: false });
    fail(server, socket);
    expect(writeHead).toHaveBeenCalledWith(400, expect.arrayContaining(['Connection', 'close']));
    expect(socket.destroy).not.toHaveBeenCalled();
    begin(socket, { complete: false }, { headersSent: true });
    fail(server, socket);
    expect(socket.destroy).toHaveBeenCalled();
    expect(socket.end).not.toHaveBeenCalled();
  });

  it('that asks for a tunnel gets a 405', () => {
    const { server, connect } = open();
    const socket = connect();
    server.emit('connect', {}, socket);
    expect(socket.end).toHaveBeenCalledWith(expect.stringMatching(/^HTTP\/1\.1 405 Method Not Allowed\r\n/));
  });
});
