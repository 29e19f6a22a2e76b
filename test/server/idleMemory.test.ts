/** Memory that load has left behind is given back once nobody asks. */

import { cp, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, inject, it, onTestFinished, vi } from 'vitest';
import { openTestDatabase } from '../support/gateway.ts';
import { endProcesses, serve, startScript } from '../support/processes.ts';

// Starting processes takes its time on a busy machine.
vi.setConfig({ testTimeout: 90_000 });
afterEach(endProcesses);

const module = new URL('../../dist/server/idleMemory.js', import.meta.url).href;

/** Makes garbage that lives for a while, as requests do, and says how much room V8 has for new objects, then and at rest. */
const script = `
  import { getHeapSpaceStatistics } from 'node:v8';
  import { collectWhenIdle } from '${module}';
  const room = () => getHeapSpaceStatistics().find((space) => space.space_name === 'new_space').physical_space_size / 2 ** 20;
  const wait = (time) => new Promise((settle) => setTimeout(settle, time));
  const ring = Array(100_000);
  let turn = 0;
  const work = (time) => {
    for (const end = Date.now() + time; Date.now() < end; ) ring[turn++ % ring.length] = Array(20).fill({ turn });
  };
  for (let round = 0; round < 20; round++) work(20);
  collectWhenIdle(200);
  let least = room();
  for (let round = 0; round < 40; round++) {
    work(20);
    least = Math.min(least, room());
    await wait(20);
  }
  ring.fill(undefined);
  while (room() > 2) await wait(1_000);
  console.log(JSON.stringify({ least, atRest: room() }));`;

const isKnown = Number.parseInt(process.versions.node, 10) >= 24;

it.skipIf(!isKnown)('is collected when nothing is done any more, and not while there is work', async () => {
  const { stdout } = await startScript(script).exit;
  // In MiB: as much as one page of V8's at most, where it was many.
  expect(JSON.parse(stdout)).toEqual({ least: expect.any(Number), atRest: expect.any(Number) });
  expect(JSON.parse(stdout).least).toBeGreaterThan(4);
});

it.skipIf(!isKnown || process.platform !== 'linux')('goes from the process of a gateway', async () => {
  const gateway = await serve(await settingsOf());
  const memory = async () => {
    const status = await readFile(`/proc/${gateway.child.pid}/status`, 'utf8');
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024;
  };
  const before = await memory();
  await expect.poll(memory, { timeout: 60_000, interval: 200 }).toBeLessThan(before - 15);
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
