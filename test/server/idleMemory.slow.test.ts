/** Memory that was allocated under load is returned to the system once the gateway is idle. */

import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, inject, it, onTestFinished, vi } from 'vitest';
import { openTestDatabase } from '../support/gateway.ts';
import { endProcesses, startSourceScript } from '../support/processes.ts';

// Starting processes is slow on a busy machine.
vi.setConfig({ testTimeout: 90_000 });
afterEach(endProcesses);

const server = new URL('../../src/server', import.meta.url).href;

/** Works for two seconds, is idle, allocates memory, and is idle again; prints how often garbage was collected after each. */
const counting = `
  import { collectWhenIdle } from '${server}/idleMemory.ts';
  const wait = (time) => new Promise((settle) => setTimeout(settle, time));
  const counts = [];
  let count = 0;
  collectWhenIdle(200, () => count++);
  for (const end = Date.now() + 2_000; Date.now() < end; await wait(20))
    for (const until = Date.now() + 20; Date.now() < until; );
  counts.push(count);
  while (count === 0) await wait(1_000);
  await wait(1_000);
  counts.push(count);
  const taken = Buffer.alloc(64 * 1024 ** 2, 1);
  while (count === 1) await wait(1_000);
  await wait(1_000);
  counts.push(count);
  console.log(JSON.stringify(counts));`;

it('garbage is collected when the process is idle and its memory has grown, and not while it works', async () => {
  const { stdout } = await startSourceScript(counting).exit;
  expect(JSON.parse(stdout)).toEqual([0, 1, 2]);
});

// Earlier versions of Node do not return memory.
const returnsMemory = Number.parseInt(process.versions.node, 10) >= 24;

it('the process of a gateway returns memory when it is idle', async ({ skip }) => {
  skip(!returnsMemory, 'Node does not return memory before version 24');
  const settings = { PORT: '0', ...(await settingsOf()) };
  const { output } = startSourceScript(`
    import { setFlagsFromString } from 'node:v8';
    import { serve } from '${server}/serve.ts';
    // Two seconds instead of a minute.
    const inTime = setInterval;
    globalThis.setInterval = (callback, time) => inTime(callback, time === 60_000 ? 2_000 : time);
    setFlagsFromString('--trace-gc');
    await serve(${JSON.stringify(settings)});`);
  // V8's trace of a collection that the process requested, and that returns memory.
  await expect.poll(() => output.stdout, { timeout: 60_000 }).toMatch(/Mark-Compact \(reduce\).* testing/);
});

async function settingsOf(): Promise<Record<string, string>> {
  const engine = inject('engine');
  if (engine.kind === 'embedded') {
    const folder = await mkdtemp(join(tmpdir(), 'dovetail-memory-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    await cp(engine.template, folder, { recursive: true });
    return { DATA_DIR: folder };
  }
  const database = await openTestDatabase();
  onTestFinished(database.close);
  return { DATABASE_URL: database.pool.options.connectionString ?? '' };
}
