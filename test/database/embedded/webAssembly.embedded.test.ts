/** How V8 compiles the engine, in processes that trace its compilations. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { newDatabaseFile } from '../../../src/database/newDatabase.ts';
import { endProcesses, startScript } from '../../support/processes.ts';

const built = new URL('../../../dist/database/embedded/embedded.js', import.meta.url);

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dovetail-test-'));
});
afterEach(async () => {
  await endProcesses();
  await rm(folder, { recursive: true, force: true });
});

/** Opens the engine, runs many statements, and returns the trace of each function that V8 has compiled. */
async function compilations(): Promise<string> {
  const script = `
    process.getBuiltinModule('node:v8').setFlagsFromString('--trace-wasm-compilation-times');
    const { openEmbedded } = await import(${JSON.stringify(built.href)});
    const { engine, close } = await openEmbedded(...JSON.parse(process.argv[1]));
    const list = Array.from({ length: 100 }, (_, index) => index + ' + 1').join();
    for (let round = 0; round < 200; round++) await engine.query('SELECT ' + list);
    await close();
  `;
  const { code, stdout } = await startScript(
    script,
    JSON.stringify([folder, { packed: await newDatabaseFile() }]),
  ).exit;
  expect(code).toBe(0);
  return stdout;
}

it('V8 compiles the engine with its baseline compiler, and no function a second time with the optimizing one', async () => {
  const compiled = await compilations();
  expect(compiled).toContain('using Liftoff');
  expect(compiled).not.toContain('using TurboFan');
});
