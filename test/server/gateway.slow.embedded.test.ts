/** The gateway as a whole: what it opens by its settings, and closes again. */

import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, it, vi } from 'vitest';
import type { BannerEntry } from '../../src/extensionPoints.ts';
import { extensions } from '../../src/extensions/extensions.ts';
import { listen as listenAt } from '../../src/http/port.ts';
import { openGateway } from '../../src/server/gateway.ts';
import { standardError } from '../../src/telemetry/log.ts';
import { freePort } from '../support/freePort.ts';
import { copyTemplate } from '../support/gateway.ts';
import { listen } from '../support/listen.ts';
import { readConfig } from '../support/settings.ts';
import { isServed } from '../support/until.ts';

const folder = await copyTemplate();
const taken = createServer((_, response) => response.end('another program'));
const { port: takenPort } = new URL(await listen(taken));
afterAll(async () => {
  taken.close();
  await rm(folder, { recursive: true, force: true });
});

const open = (settings: Record<string, string>) =>
  openGateway(readConfig({ DATA_DIR: folder, PORT: '0', LOG_LEVEL: 'silent', ...settings }));

it.each(['PORT', 'METRICS_PORT'])(
  'a start that fails because %s is taken reports that, and closes everything else',
  async (name) => {
    const port = String(await freePort());
    const settings = { METRICS_PORT: port, [name]: takenPort };
    await expect(open(settings)).rejects.toThrow(
      `${name} ${takenPort} is taken by another program. Stop it, or set ${name === 'PORT' ? '--port or PORT' : name} to another port; 0 picks a free one.`,
    );
    expect(await isServed(`http://127.0.0.1:${port}/metrics`)).toBe(false);
    const gateway = await open({ PORT: port });
    expect(gateway.url).toBe(`http://127.0.0.1:${port}`);
    await gateway.close();
  },
);

/** Where the metrics are, by the entries of a start. */
const metricsIn = (lines: readonly BannerEntry[]) => lines.find(([name]) => name === 'Metrics')?.[1] ?? '';

it('a gateway applies its settings, and releases everything when it is closed', async () => {
  const gateway = await open({
    METRICS_PORT: '0',
    STATEMENT_TIMEOUT: '1',
    DATABASE_CONNECTIONS: '3',
    RESPONSE_CACHE_MB: '1',
  });
  const { url, lines, shownToken, database } = gateway;
  const metricsUrl = metricsIn(lines);
  expect(database.pool.options.max).toBe(3);
  const client = await database.pool.connect();
  // A second longer than the timeout of the server, which should report it first. The types of `pg` leave the connection out.
  const { connection } = client as typeof client & { readonly connection: { readonly stream: Socket } };
  expect(connection.stream.timeout).toBe(2_000);
  client.release();
  const headers = { Authorization: `Bearer ${shownToken}` };
  // A response of a few kilobytes is cached.
  for (let time = 0; time < 2; time++) await (await fetch(`${url}/api/v1/dtt/sessions`, { headers })).text();
  expect(await (await fetch(metricsUrl)).text()).toMatch(
    /^dovetail_response_cache_reads_total\{result="hit"\} 1$/m,
  );
  expect(await (await fetch(`${url}/readyz`)).text()).toBe('ready\n');
  for (const each of [url, metricsUrl]) expect(await isServed(each)).toBe(true);
  // A request that waits for a change takes longer than any other may.
  const own = `${url}/api/v1/users/me`;
  const tag = (await fetch(own, { headers })).headers.get('ETag') ?? '';
  // What is not kept needs a statement, and so begins the time.
  await database.pool.query('UPDATE "DttDevice" SET "apiHits" = "apiHits"');
  await sleep(500);
  const waited = await fetch(own, { headers: { ...headers, 'If-None-Match': tag, Prefer: 'wait=7' } });
  expect(waited.status).toBe(304);

  await gateway.close();
  for (const each of [url, metricsUrl]) expect(await isServed(each)).toBe(false);
  await expect(database.pool.query('SELECT 1')).rejects.toThrow();

  const again = await open({ RESPONSE_CACHE_MB: '0', METRICS_PORT: '0' });
  expect(again.shownToken).toBe(shownToken);
  for (let time = 0; time < 2; time++)
    await (await fetch(`${again.url}/api/v1/dtt/sessions`, { headers })).text();
  expect(await (await fetch(metricsIn(again.lines))).text()).toMatch(
    /^dovetail_response_cache_reads_total\{result="hit"\} 0$/m,
  );
  await again.close();
});

it('a gateway closes everything, also after an extension has failed to, and reports the first error', async () => {
  const extension = extensions.find((each) => each.open);
  if (!extension) throw new Error('no extension opens anything');
  vi.spyOn(extension, 'open').mockResolvedValue({ close: () => Promise.reject(new Error('stuck')) });
  await expect(open({ PORT: takenPort })).rejects.toThrow(`PORT ${takenPort} is taken`);
  const gateway = await open({});
  await expect(gateway.close()).rejects.toThrow('stuck');
  await expect(gateway.database.pool.query('SELECT 1')).rejects.toThrow();
  vi.restoreAllMocks();
  await (await open({})).close();
});

it('a gateway that closes sends a large response to its end to a client that is still reading it', async () => {
  const gateway = await open({});
  await gateway.database.pool.query(
    `UPDATE "User" SET "profileDescription" = repeat('0123456789abcdef', 800000)`,
  );
  const headers = { Authorization: `Bearer ${gateway.shownToken}` };
  const asking = request(`${gateway.url}/api/v1/users/me`, { headers }).end();
  const [response] = await once(asking, 'response');
  // More is on its way than the sockets of both sides hold.
  const closing = gateway.close();
  await sleep(200);
  let size = 0;
  for await (const chunk of response) size += chunk.length;
  expect(size).toBe(Number(response.headers['content-length']));
  await closing;
});

it('the log has a line when the embedded engine fails, which says that no acknowledged data is lost', async () => {
  const log: Record<string, unknown>[] = [];
  const writing = vi.spyOn(await standardError(), 'write');
  writing.mockImplementation((line) => void log.push(JSON.parse(line)));
  const own = await copyTemplate();
  const gateway = await open({ DATA_DIR: own, LOG_LEVEL: 'fatal' });
  // PGlite cannot start programs, and aborts.
  await expect(gateway.database.pool.query("COPY (SELECT 1) TO PROGRAM 'cat'")).rejects.toThrow();
  await gateway.failure;
  await expect(gateway.database.pool.query('SELECT 1')).rejects.toThrow();
  const msg = 'the embedded database failed; what it has acknowledged is there at the next start';
  expect(log).toMatchObject([{ err: { message: expect.stringContaining('the engine broke off') }, msg }]);
  await gateway.close();
  await rm(own, { recursive: true, force: true });
});

it('a server listens only on HOST', async () => {
  const server = createServer();
  const url = await listenAt(server, { HOST: '127.0.0.1' }, 'PORT', 0);
  const { address, port } = server.address() as AddressInfo;
  expect({ address, url }).toEqual({ address: '127.0.0.1', url: `http://127.0.0.1:${port}` });
  server.close();
});
