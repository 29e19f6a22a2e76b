/** Listens on ports, and finds out which program uses a taken one. */

import { once } from 'node:events';
import type { Server } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import type { Config } from '../config/config.ts';
import { errorText, SetupError, systemCodeOf } from '../errors.ts';
import { originOf } from './hostName.ts';

/**
 * Listens for a moment: there is no other way to find out whether a port can be used.
 * @returns what listens there already, a gateway on either of its ports or another program; undefined for a free port.
 */
export async function holderOf(host: string, port: number): Promise<'gateway' | 'other' | undefined> {
  const server = createServer();
  try {
    await once(server.listen(port, host), 'listening');
    await once(server.close(), 'close');
    return undefined;
  } catch (error) {
    if (systemCodeOf(error) !== 'EADDRINUSE') throw error;
    return (await isGateway(host, port)) ? 'gateway' : 'other';
  }
}

const unusable = (host: string, setting: string, port: number) => (error: unknown) => {
  throw new SetupError(`HOST ${host} and ${setting} ${port} cannot be listened on: ${errorText(error)}.`);
};

/**
 * @param setting the name of the setting that the port comes from.
 * @throws {SetupError} if the port cannot be used. The message names its user, and what to do.
 */
export async function checkPort(host: string, setting: string, port: number): Promise<void> {
  const holder = await holderOf(host, port).catch(unusable(host, setting, port));
  if (holder === undefined) return;
  const how = setting === 'PORT' ? '--port or PORT' : setting;
  const next = `set ${how} to another port; 0 picks a free one.`;
  if (holder === 'gateway' && setting === 'PORT')
    throw new SetupError(
      `Dovetail already runs at ${originOf(host, port)}. Stop it. For a second gateway, ${next} Without DATABASE_URL it needs another DATA_DIR too.`,
    );
  const who = holder === 'gateway' ? 'a Dovetail that runs already' : 'another program';
  throw new SetupError(`${setting} ${port} is taken by ${who}. Stop it, or ${next}`);
}

/** How long, in milliseconds, the program on a port may take to respond. */
const timeout = 2_000;

async function isGateway(host: string, port: number): Promise<boolean> {
  const ask = (path: string) => fetch(originOf(host, port) + path, { signal: AbortSignal.timeout(timeout) });
  try {
    const health = await ask('/healthz');
    // Every response of a gateway has the id; other programs may be alive as well.
    if (health.headers.has('X-Request-Id') && (await health.text()) === 'alive\n') return true;
    return (await (await ask('/metrics')).text()).includes('dovetail_build_info');
  } catch {
    return false;
  }
}

/**
 * @param setting the name of the setting that the port comes from.
 * @param asked the port; 0 for any that is free.
 * @returns where the server is, such as `http://127.0.0.1:4000`.
 * @throws {SetupError} when the port cannot be listened on.
 */
export async function listen(
  server: Server,
  { HOST }: Pick<Config, 'HOST'>,
  setting: string,
  asked: number,
): Promise<string> {
  server.listen(asked, HOST);
  await once(server, 'listening').catch(async (error) => {
    // Another program may have taken the port a moment before.
    await checkPort(HOST, setting, asked);
    unusable(HOST, setting, asked)(error);
  });
  // A server that listens on a port has an address of this type.
  const { port } = server.address() as AddressInfo;
  return originOf(HOST, port);
}
