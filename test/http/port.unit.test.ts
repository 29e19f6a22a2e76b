/** Who listens on a port, and where servers are reached. */

import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { createServer, type Server } from 'node:net';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { SetupError } from '../../src/errors.ts';
import { isEverywhere, originOf } from '../../src/http/hostName.ts';
import { checkPort, holderOf } from '../../src/http/port.ts';
import { listen } from '../support/listen.ts';

let server: Server | undefined;
afterEach(() => {
  server?.close();
});

async function portOf(listening: Server): Promise<number> {
  server = listening;
  return Number(new URL(await listen(server)).port);
}

/** A server that responds with the text at the path, with the X-Request-Id of a gateway or without. */
const serving = (path: string, text: string, id?: string) =>
  createHttpServer((request, response) => {
    if (id !== undefined) response.setHeader('X-Request-Id', id);
    response.setHeader('Connection', 'close').end(request.url === path ? text : 'no');
  });

const local = '127.0.0.1';

describe('a port', () => {
  it.each<[string, string, string, () => Server]>([
    ['the liveness probe of a gateway', '0.0.0.0', 'gateway', () => serving('/healthz', 'alive\n', 'x')],
    [
      'the metrics of a gateway',
      local,
      'gateway',
      () => serving('/metrics', '# TYPE dovetail_build_info gauge'),
    ],
    ['such a probe without X-Request-Id', local, 'other', () => serving('/healthz', 'alive\n')],
    ['a similar text', local, 'other', () => serving('/healthz', 'alive', 'x')],
    [
      'a message that is not HTTP',
      local,
      'other',
      () => createServer((socket) => socket.end('220 ready\r\n')),
    ],
  ])('that responds with %s on %s is classified as %s', async (_, host, holder, open) => {
    expect(await holderOf(host, await portOf(open()))).toBe(holder);
  });

  it('that never responds is that of another program, soon', async () => {
    vi.spyOn(AbortSignal, 'timeout').mockReturnValue(AbortSignal.timeout(50));
    expect(await holderOf(local, await portOf(createServer(() => {})))).toBe('other');
  });

  const gateway = () => serving('/healthz', 'alive\n', 'x');
  const other = () => createServer((socket) => socket.end());
  const second =
    'Stop it. For a second gateway, set --port or PORT to another port; 0 picks a free one. Without DATABASE_URL it needs another DATA_DIR too.';

  it.each<[string, () => Server, string]>([
    ['PORT', gateway, `Dovetail already runs at http://127.0.0.1:4000. ${second}`],
    [
      'METRICS_PORT',
      gateway,
      `METRICS_PORT 4000 is taken by a Dovetail that runs already. Stop it, or set METRICS_PORT to another port; 0 picks a free one.`,
    ],
    [
      'PORT',
      other,
      'PORT 4000 is taken by another program. Stop it, or set --port or PORT to another port; 0 picks a free one.',
    ],
  ])('for %s is refused, with who has it and what to do', async (setting, open, message) => {
    const port = await portOf(open());
    const error = new SetupError(message.replace('4000', String(port)));
    await expect(checkPort(local, setting, port)).rejects.toThrow(error);
  });

  it('is free if nothing listens on it, and can still be used after the check', async () => {
    const port = await portOf(createServer());
    server?.close();
    await checkPort(local, 'PORT', port);
    await once(createServer().listen(port, local).close(), 'close');
  });

  it('of an address that this host does not have is unusable, with the reason', async () => {
    await expect(checkPort('192.0.2.1', 'PORT', 4000)).rejects.toThrow(
      /^HOST 192.0.2.1 and PORT 4000 cannot be listened on: listen EADDRNOTAVAIL/,
    );
  });
});

it.each([
  ['127.0.0.1', 'http://127.0.0.1:4000', false],
  ['::1', 'http://[::1]:4000', false],
  ['0.0.0.0', 'http://127.0.0.1:4000', true],
  ['::', 'http://[::1]:4000', true],
  ['::ffff:0.0.0.0', 'http://127.0.0.1:4000', true],
  ['0', 'http://127.0.0.1:4000', true],
  ['10.1', 'http://10.1:4000', false],
  ['a b', 'http://a b:4000', false],
])('a server on %s is reached at %s, and listens on every address: %s', (host, origin, everywhere) => {
  expect(originOf(host, 4000)).toBe(origin);
  expect(isEverywhere(host)).toBe(everywhere);
});
