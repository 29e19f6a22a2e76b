/** A gateway whose process is killed while it activates templates: the activations that it acknowledged are durable. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, inject, it, vi } from 'vitest';
import { readConfig } from '../../src/config/config.ts';
import { openGateway } from '../../src/server/gateway.ts';
import { createAccount } from '../support/accounts.ts';
import { copyFolder } from '../support/copyFolder.ts';
import { openTestDatabase } from '../support/gateway.ts';
import { endProcesses, serve } from '../support/processes.ts';

// Starting processes is slow on a busy machine.
vi.setConfig({ testTimeout: 90_000 });

const cleanUps: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  await endProcesses();
  for (const cleanUp of cleanUps.splice(0)) await cleanUp();
});

/** The settings of a gateway, and an account of it. */
async function prepare() {
  const engine = inject('engine');
  if (engine.kind === 'embedded') {
    const folder = await mkdtemp(join(tmpdir(), 'dovetail-killed-'));
    cleanUps.push(() => rm(folder, { recursive: true, force: true }));
    await copyFolder(engine.template, folder);
    return { settings: { DATA_DIR: folder }, token: undefined, templates: [1, 2] };
  }
  const database = await openTestDatabase();
  cleanUps.push(database.close);
  const { token, dttTemplates } = await createAccount(database.client, 'alice');
  return {
    settings: { DATABASE_URL: database.pool.options.connectionString ?? '' },
    token,
    templates: dttTemplates,
  };
}

/** How many activations come before the kill. */
const enough = 20;

it('a gateway that was killed has every activation that it had acknowledged', async () => {
  const { settings, token: given, templates } = await prepare();
  const limits = { RATE_LIMIT: '0', RATE_LIMIT_ANONYMOUS: '0' };
  const first = await serve({ ...settings, ...limits });
  const token = given ?? first.token;
  const ask = async ({ url }: { url: string }, path: string, init: RequestInit = {}) => {
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
    const response = await fetch(`${url}/api/v1${path}`, { ...init, headers });
    return { status: response.status, body: await response.json() };
  };

  let acknowledged: number | undefined;
  let attempted: number | undefined;
  let count = 0;
  for (;;) {
    const template = templates[count % templates.length];
    attempted = template;
    const asking = ask(first, `/dtt/templates/${template}`, { method: 'POST', body: '{"isActive":true}' });
    // With luck in the middle of it.
    if (count === enough) setTimeout(() => first.child.kill('SIGKILL'), Math.random() * 3);
    const status = await asking.then(
      (response) => response.status,
      () => undefined,
    );
    if (status === undefined) break;
    expect(status).toBe(200);
    acknowledged = template;
    count++;
  }
  expect(count).toBeGreaterThanOrEqual(enough);

  // Its connections may be closed a moment before its lock on the folder is released.
  await first.exit;
  // In this process, which is faster than starting another.
  const second = await openGateway(readConfig({ ...settings, ...limits, PORT: '0', LOG_LEVEL: 'silent' }));
  cleanUps.unshift(second.close);
  const { status, body } = await ask(second, '/dtt/templates/active');
  expect(status).toBe(200);
  expect([acknowledged, attempted]).toContain(body.data.id);
});
