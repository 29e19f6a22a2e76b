/** How servers listen, and where they are then. */

import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Config } from '../config/config.ts';
import { SetupError } from '../errors.ts';
import { originOf } from './origin.ts';
import { checkPort } from './port.ts';

/**
 * @param setting the name of the setting that the port comes from.
 * @returns where the server is, such as `http://127.0.0.1:4000`.
 * @throws {SetupError} when the port cannot be listened on.
 */
export async function listen(
  server: Server,
  config: Pick<Config, 'HOST' | 'PORT' | 'METRICS_PORT'>,
  setting: 'PORT' | 'METRICS_PORT',
): Promise<string> {
  const { HOST, [setting]: asked } = config;
  server.listen(asked, HOST);
  await once(server, 'listening').catch(async (error) => {
    // Whoever listens there may have been faster by a moment.
    await checkPort(HOST, setting, asked ?? 0);
    throw new SetupError(`HOST ${HOST} and ${setting} ${asked} cannot be listened on: ${error.message}`);
  });
  // A server that listens on a port has an address of this type.
  const { port } = server.address() as AddressInfo;
  return originOf(HOST, port);
}
