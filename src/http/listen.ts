/** How servers listen, and where they are then. */

import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Config } from '../config.ts';
import { SetupError } from '../errors.ts';

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
  await once(server, 'listening').catch((error) => {
    throw cannotListen(HOST, setting, asked ?? 0, error.message);
  });
  // A server that listens on a port has an address of this type.
  const { port } = server.address() as AddressInfo;
  return originOf(HOST, port);
}

export const cannotListen = (host: string, setting: string, port: number, reason: string) =>
  new SetupError(`HOST ${host} and ${setting} ${port} cannot be listened on: ${reason}`);

/**
 * The origin by which this machine reaches a server: one that listens on every address is reached by its own. An IPv6
 * address stands in brackets (RFC 3986, section 3.2.2).
 */
export function originOf(host: string, port: number): string {
  const bracketed = host.includes(':') ? `[${host}]` : host;
  return `http://${ownAddress[canonical(bracketed)] ?? bracketed}:${port}`;
}

/** Where a server is found that listens everywhere. */
const ownAddress: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '[::]': '[::1]' };

/** Whether a value of HOST listens on every address of the machine. */
export function isEverywhere(host: string): boolean {
  return Object.hasOwn(ownAddress, canonical(host.includes(':') ? `[${host}]` : host));
}

/** An address in the one form that URLs have for it: the system takes `0` for `0.0.0.0` as well. */
function canonical(host: string): string {
  const url = `http://${host}`;
  return URL.canParse(url) ? new URL(url).hostname : host;
}
