/** The processes of the benchmark: each contestant is one, and is stopped by its own id. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';

export type ServerProcess = Awaited<ReturnType<typeof startServer>>;

export interface Command {
  readonly args: readonly string[];
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** In milliseconds. */
const startLimit = 30_000;
const stopLimit = 10_000;

/** Starts a server and waits until it has printed its address, such as `http://127.0.0.1:4000`. */
export async function startServer({ args, cwd, env }: Command, given: Readonly<Record<string, string>>) {
  const child = spawn(process.execPath, args, {
    cwd,
    // The rate limit is never reached, but its cost is measured. There is no log line for each request, since the other
    // contestants write none either.
    env: {
      RATE_LIMIT: '1000000000',
      LOG_LEVEL: 'warn',
      ...process.env,
      ...given,
      ...env,
      NODE_ENV: 'production',
      HOST: '127.0.0.1',
      PORT: '0',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(child);
  let output = '';
  let complaints = '';
  child.once('exit', () => {
    running.delete(child);
  });
  child.stderr.on('data', (chunk) => {
    complaints = (complaints + chunk).slice(-2_000);
  });
  const url = await new Promise<string>((settle, fail) => {
    const timer = setTimeout(() => fail(new Error(`${args.join(' ')} did not listen in time`)), startLimit);
    child.stdout.on('data', (chunk) => {
      if (output.length < 10_000) output += chunk;
      const [found] = /http:\/\/127\.0\.0\.1:\d+(?=\D)/.exec(output) ?? [];
      if (found !== undefined) {
        clearTimeout(timer);
        settle(found);
      }
    });
    child.once('error', fail);
    child.once('exit', (code) => {
      clearTimeout(timer);
      fail(new Error(`${args.join(' ')} ended with ${code}: ${complaints || output}`));
    });
  }).catch(async (error) => {
    await stop(child);
    throw error;
  });
  // A process without an id has not been started, and has not printed an address.
  return { url, pid: child.pid ?? 0, stop: () => stop(child) };
}

const running = new Set<ChildProcess>();

/** Kills all processes when the benchmark is interrupted. */
export function killAll(): void {
  for (const child of running) child.kill('SIGKILL');
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), stopLimit);
  await ended;
  clearTimeout(timer);
}

/** The processor time of the process so far in microseconds, or NaN if the system does not report it. */
export async function processorTime(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  // The second field is the name in parentheses, which may contain spaces; utime and stime are fields 14 and 15, in
  // hundredths of a second (proc_pid_stat(5)).
  const fields = status.slice(status.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10_000;
}
