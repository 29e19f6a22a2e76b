/** Servers of tests, on ports of this machine. */

import { once } from 'node:events';
import type { Server as HttpServer } from 'node:http';
import type { AddressInfo, Server } from 'node:net';

/** @returns the origin at which the server listens, such as `http://127.0.0.1:40123`. */
export async function listen(server: Server, port = 0): Promise<string> {
  await once(server.listen(port, '127.0.0.1'), 'listening');
  // It listens on a port, and not on a pipe.
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Ends a server with all its connections. */
export function shut(server: HttpServer): void {
  server.close();
  server.closeAllConnections();
}
