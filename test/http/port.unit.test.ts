/** What is said of a port. */

import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { lookAtPort } from '../../src/http/port.ts';

let server: Server | undefined;
afterEach(() => {
  server?.close();
});

async function portOf(listening: Server, host = '127.0.0.1'): Promise<number> {
  server = listening;
  await once(listening.listen(0, host), 'listening');
  // A server that listens on a port has an address of this type.
  return (listening.address() as AddressInfo).port;
}

/** A server that says the text at the path, with the header of a gateway or without. */
const speaker = (path: string, text: string, id?: string) =>
  createHttpServer((request, response) => {
    if (id !== undefined) response.setHeader('X-Request-Id', id);
    response.setHeader('Connection', 'close').end(request.url === path ? text : 'no');
  });

describe('a port', () => {
  it.each<[string, () => Server]>([
    ['gateway', () => speaker('/healthz', 'alive\n', 'x')],
    ['gateway', () => speaker('/metrics', '# TYPE dovetail_build_info gauge')],
    ['taken', () => speaker('/healthz', 'alive\n')],
    ['taken', () => speaker('/healthz', 'alive', 'x')],
    ['taken', () => createServer((socket) => socket.end('220 ready\r\n'))],
  ])('is a %s by what it says', async (is, open) => {
    expect(await lookAtPort('127.0.0.1', await portOf(open()))).toEqual({ is });
  });

  it('is a gateway on every address as well', async () => {
    const port = await portOf(speaker('/healthz', 'alive\n', 'x'), '0.0.0.0');
    expect(await lookAtPort('0.0.0.0', port)).toEqual({ is: 'gateway' });
  });

  it('is free if nobody listens, and still is when it has been looked at', async () => {
    const port = await portOf(createServer());
    server?.close();
    expect(await lookAtPort('127.0.0.1', port)).toEqual({ is: 'free' });
    await once(createServer().listen(port, '127.0.0.1').close(), 'close');
  });

  it('of a host that is not here cannot be used, and why is told', async () => {
    expect(await lookAtPort('192.0.2.1', 4000)).toEqual({
      is: 'unusable',
      reason: expect.stringContaining('EADDRNOTAVAIL'),
    });
  });
});
