/** Processes for tests: the built command line tool, or a script. Each ends with its test. */

import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const cli = fileURLToPath(new URL('../../bin/dovetail.js', import.meta.url));

export interface Exit {
  code: number | null;
  stdout: string;
  stderr: string;
}

export type RunningProcess = ReturnType<typeof start>;

const running = new Set<ChildProcessWithoutNullStreams>();

/** Starts `dovetail` with these settings. Settings in the environment of the test run are left out. */
export function startCli(args: readonly string[], settings: Record<string, string>) {
  return start([cli, ...args], settings);
}

/** Starts a script in JavaScript, which imports nothing of `src`. */
export function startScript(source: string, ...args: string[]) {
  return start(['--input-type=module', '--eval', source, ...args], {});
}

/** Starts a script that may import from `src`. */
export function startSourceScript(source: string, ...args: string[]) {
  return start(['--import', 'tsx', '--input-type=module', '--eval', source, ...args], {});
}

function start(args: readonly string[], settings: Record<string, string>) {
  const { HOST, PORT, DATABASE_URL, DATA_DIR, LOG_LEVEL, UPSTREAM_URL, UPSTREAM_TOKEN, ...env } = process.env;
  const child = spawn(process.execPath, args, {
    env: { ...env, LOG_LEVEL: 'warn', ...settings },
  });
  running.add(child);
  /** The output so far. */
  const output = { stdout: '', stderr: '' };
  child.stdout.on('data', (data) => {
    output.stdout += data;
  });
  child.stderr.on('data', (data) => {
    output.stderr += data;
  });
  child.stdin.on('error', () => {});
  const exit = once(child, 'close').then(([code]: (number | null)[]): Exit => {
    running.delete(child);
    return { code: code ?? null, ...output };
  });
  return { child, output, exit };
}

/** Runs `dovetail` to its end. */
export function runCli(args: readonly string[], settings: Record<string, string>): Promise<Exit> {
  const { child, exit } = startCli(args, settings);
  child.stdin.end();
  return exit;
}

/** Waits until the standard output matches the pattern. @returns all of the output. */
export async function written(process: RunningProcess, pattern: RegExp): Promise<string> {
  const { child, output, exit } = process;
  const ended = exit.then(({ code, stderr }) => {
    throw new Error(`it ended with ${code} before it wrote ${pattern}: ${output.stdout}${stderr}`);
  });
  ended.catch(() => {});
  while (!pattern.test(output.stdout)) await Promise.race([once(child.stdout, 'data'), ended]);
  return output.stdout;
}

/** Ends all processes that are still running; to be called in `afterEach`. */
export async function endProcesses(): Promise<void> {
  const ends = [...running].map((child) => {
    const closed = once(child, 'close');
    child.kill('SIGKILL');
    return closed;
  });
  await Promise.all(ends);
}

export type ServedGateway = Awaited<ReturnType<typeof serve>>;

/** Starts `dovetail serve` on a free port, and waits until it prints its address. */
export async function serve(settings: Record<string, string>, ...args: readonly string[]) {
  const process = startCli(['serve', ...args], { PORT: '0', ...settings });
  const text = await written(process, /\n {2}curl .*\n {2}curl .*\n/);
  return {
    ...process,
    url: /http:\/\/[^/\s]+/.exec(text)?.[0] ?? '',
    /** The demo account's token; empty where there is none. */
    token: /dvt_[\w-]+/.exec(text)?.[0] ?? '',
  };
}
