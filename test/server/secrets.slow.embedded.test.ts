/** Where the secret of a token is, and is not, after it was created, rotated and used. */

import { execFile } from 'node:child_process';
import { readdir, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, it } from 'vitest';
import { freePort } from '../support/freePort.ts';
import { graphqlOnce } from '../support/gateway.ts';
import { listen, shut } from '../support/listen.ts';
import { newFolder } from '../support/newFolder.ts';
import { endProcesses, runCli, serve } from '../support/processes.ts';

const folder = newFolder();
afterAll(endProcesses);

/** The contents of all files in a folder. */
async function contentsOf(path: string): Promise<Buffer[]> {
  const entries = await readdir(path, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && entry.name !== 'demo-token');
  return Promise.all(files.map(({ parentPath, name }) => readFile(join(parentPath, name))));
}

it('a secret is in no log, trace, metric or file, and in memory only while a request uses it', async () => {
  let traces = '';
  const collector = createServer(async (request, response) => {
    traces += Buffer.concat(await request.toArray()).toString();
    response.writeHead(200, { 'Content-Type': 'application/json' }).end('{}');
  });
  const data = join(folder, 'data');
  const metricsPort = await freePort();
  const gateway = await serve({
    DATA_DIR: data,
    LOG_LEVEL: 'debug',
    METRICS_PORT: String(metricsPort),
    OTEL_EXPORTER_OTLP_ENDPOINT: `${await listen(collector)}/`,
    NODE_OPTIONS: `--heapsnapshot-signal=SIGUSR2 --diagnostic-dir=${folder}`,
  });
  /** Which of the texts the heap of the gateway has after garbage collection. */
  async function inMemory(...texts: string[]): Promise<string[]> {
    gateway.child.kill('SIGUSR2');
    let path = '';
    async function lastBytes(): Promise<string> {
      const name = (await readdir(folder)).find((each) => each.endsWith('.heapsnapshot'));
      if (name === undefined) return '';
      path = join(folder, name);
      return (await promisify(execFile)('tail', ['-c', '3', path])).stdout.trimEnd();
    }
    await expect.poll(lastBytes, { timeout: 60_000, interval: 200 }).toMatch(/\]\}$/);
    const content = await readFile(path);
    await rm(path);
    return texts.filter((text) => content.includes(text));
  }

  const ask = (token: string, query: string, variables = {}) => graphqlOnce(gateway, token, query, variables);
  const create = 'mutation ($name: String!) { createApiToken(name: $name) { secret token { databaseId } } }';
  const { data: created } = await ask(gateway.token, create, { name: 'kept secret' });
  const { secret, token } = created.createApiToken;
  expect((await ask(secret, '{ viewer { username } }')).data.viewer.username).toBe('demo');
  expect(await inMemory(secret)).toEqual([secret]);
  const rotated = await runCli(['token', 'rotate', String(token.databaseId), '--keep', '1d'], {
    DATA_DIR: data,
  });
  const next = rotated.stdout.trim();
  for (const each of [secret, next]) expect((await ask(each, '{ viewer { username } }')).status).toBe(200);
  await ask(
    gateway.token,
    'mutation ($token: ApiTokenReference!) { revokeApiToken(token: $token) { token { name } } }',
    {
      token,
    },
  );
  for (const each of [secret, next]) expect((await ask(each, '{ viewer { username } }')).status).toBe(401);
  const metrics = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
  // Node keeps the last request of a connection, and the last text that was matched.
  for (let count = 0; count < 3; count++) await ask(gateway.token, '{ __typename }');
  expect(await inMemory(secret, next)).toEqual([]);
  gateway.child.kill('SIGTERM');
  const { stdout, stderr } = await gateway.exit;
  shut(collector);
  for (const text of [stderr, traces, metrics]) expect(text).toContain('mutation createApiToken');
  const files = await contentsOf(data);
  for (const each of [secret, next]) {
    expect(`${stdout}${stderr}${traces}${metrics}`).not.toContain(each);
    expect(files.filter((content) => content.includes(each))).toEqual([]);
  }
}, 180_000);
