/** Runs the command line tool in the process of the test: a process of its own would take a second to start. */

import { vi } from 'vitest';
import type { Exit } from './processes.ts';

/** Thrown in place of `process.exit`. */
class Exited extends Error {
  readonly code: number;
  constructor(code: number) {
    super(`the process ends with ${code}`);
    this.code = code;
  }
}

/** Settings in the environment of the test run, which are left out as in `startCli`. */
const developerSettings = ['HOST', 'PORT', 'DATABASE_URL', 'DATA_DIR', 'LOG_LEVEL'];

let runs = 0;

/** Runs `dovetail` to its end with the settings, like `runCli`, one after the other. */
export async function runHere(args: readonly string[], settings: Record<string, string>): Promise<Exit> {
  const output = { stdout: '', stderr: '' };
  const spies = [
    ...(['stdout', 'stderr'] as const).map((stream) =>
      vi.spyOn(process[stream], 'write').mockImplementation((text, ...others: unknown[]) => {
        output[stream] += text;
        const callback = others.at(-1);
        if (typeof callback === 'function') callback();
        return true;
      }),
    ),
    vi.spyOn(process, 'exit').mockImplementation((code) => {
      throw new Exited(Number(code));
    }),
  ];
  const { argv, exitCode } = process;
  process.argv = [process.execPath, 'dovetail', ...args];
  process.exitCode = undefined;
  for (const name of developerSettings) vi.stubEnv(name, settings[name]);
  for (const [name, value] of Object.entries(settings)) vi.stubEnv(name, value);
  try {
    // The program runs when it is imported. Another query makes Node import it again.
    const program = `../../src/cli/program.ts?run=${++runs}`;
    await import(/* @vite-ignore */ program);
    return { code: Number(process.exitCode ?? 0), ...output };
  } catch (error) {
    if (error instanceof Exited) return { code: error.code, ...output };
    throw error;
  } finally {
    vi.unstubAllEnvs();
    process.argv = argv;
    process.exitCode = exitCode;
    for (const spy of spies) spy.mockRestore();
  }
}
