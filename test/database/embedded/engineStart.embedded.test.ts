/** How V8 compiles the engine, in a process that traces its compilations. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { endProcesses, startScript, written } from '../../support/processes.ts';

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dovetail-test-'));
});
afterEach(async () => {
  await endProcesses();
  await rm(folder, { recursive: true, force: true });
});

/**
 * Runs the built gateway, and returns the trace of each function that V8 has compiled when it has responded to many queries
 * that no cache has. The sources would need tsx, which has WebAssembly of its own.
 */
async function compilations(): Promise<string> {
  const gateway = startScript(`
    process.getBuiltinModule('node:v8').setFlagsFromString('--trace-wasm-compilation-times');
    Object.assign(process.env, { PORT: '0', DATA_DIR: ${JSON.stringify(folder)}, RESPONSE_CACHE_MB: '0', RATE_LIMIT: '0' });
    process.argv.push('serve');
    await import(${JSON.stringify(resolve('bin/dovetail.js'))});`);
  const text = await written(gateway, /\n {2}curl .*\n {2}curl .*\n/);
  const [url = ''] = /http:\/\/[^/\s]+/.exec(text) ?? [];
  const [token] = /dvt_[\w-]+/.exec(text) ?? [];
  for (let round = 0; round < 60; round++) {
    const response = await fetch(`${url}/graphql`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` },
      body: JSON.stringify({
        query: `{ dttSessions(first: ${1 + round}) { nodes { name segments { points } } } }`,
      }),
    });
    expect(await response.json()).toHaveProperty('data.dttSessions.nodes');
  }
  gateway.child.kill();
  return (await gateway.exit).stdout;
}

it('V8 compiles the engine with its baseline compiler, and no function a second time with the optimizing one', async () => {
  const compiled = await compilations();
  expect(compiled).toContain('using Liftoff');
  expect(compiled).not.toContain('using TurboFan');
});
