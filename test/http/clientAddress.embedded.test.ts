import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { afterAll, expect, it } from 'vitest';
import { addressOf } from '../../src/http/clientAddress.ts';
import { timeouts, watchConnections } from '../../src/http/connections.ts';
import { listen } from '../support/listen.ts';

const server = createServer();
watchConnections(server, timeouts, new AbortController().signal, 0);
// What an event of a server is emitted with.
const requested = once(server, 'request') as Promise<[IncomingMessage]>;
const { port } = new URL(await listen(server));
afterAll(() => server.close());

it('the address of a client is known also after the client has closed the connection', async () => {
  const socket = connect(Number(port), '127.0.0.1');
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  const [request] = await requested;
  socket.destroy();
  await once(request.socket, 'close');
  expect(addressOf(request, 0)).toBe('127.0.0.1');
});
