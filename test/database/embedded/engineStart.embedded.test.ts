/** How V8 compiles the engine, in a process that traces its compilations. */

import { resolve } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { newFolder } from '../../support/newFolder.ts';
import { endProcesses, startScript, written } from '../../support/processes.ts';

afterEach(endProcesses);

it('V8 compiles the engine with its baseline compiler, and no function a second time with the optimizing one', async () => {
  // The built gateway: tsx has WebAssembly of its own.
  const gateway = startScript(`
    process.getBuiltinModule('node:v8').setFlagsFromString('--trace-wasm-compilation-times');
    Object.assign(process.env, { PORT: '0', DATA_DIR: ${JSON.stringify(newFolder())} });
    process.argv.push('serve');
    await import(${JSON.stringify(resolve('bin/dovetail.js'))});`);
  await written(gateway, /\n {2}curl .*\n {2}curl .*\n/);
  gateway.child.kill();
  const compiled = (await gateway.exit).stdout;
  expect(compiled).toContain('using Liftoff');
  expect(compiled).not.toContain('using TurboFan');
});
