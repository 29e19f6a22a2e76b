/** How V8 compiles the engine, in a process that traces its compilations. */

import { rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { newFolder } from '../../support/newFolder.ts';
import { endProcesses, startScript, written } from '../../support/processes.ts';

let folder: string;

beforeEach(() => {
  folder = newFolder();
});
afterEach(async () => {
  await endProcesses();
  await rm(folder, { recursive: true, force: true });
});

/** The trace of each function that V8 has compiled when the built gateway has started: tsx has WebAssembly of its own. */
async function compilations(): Promise<string> {
  const gateway = startScript(`
    process.getBuiltinModule('node:v8').setFlagsFromString('--trace-wasm-compilation-times');
    Object.assign(process.env, { PORT: '0', DATA_DIR: ${JSON.stringify(folder)} });
    process.argv.push('serve');
    await import(${JSON.stringify(resolve('bin/dovetail.js'))});`);
  await written(gateway, /\n {2}curl .*\n {2}curl .*\n/);
  gateway.child.kill();
  return (await gateway.exit).stdout;
}

it('V8 compiles the engine with its baseline compiler, and no function a second time with the optimizing one', async () => {
  const compiled = await compilations();
  expect(compiled).toContain('using Liftoff');
  expect(compiled).not.toContain('using TurboFan');
});
