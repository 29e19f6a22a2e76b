/** The processes of the benchmark: each contestant is one, and is stopped by its own id. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface ServerProcess {
  /** Where it listens, such as `http://127.0.0.1:4000`. */
  readonly url: string;
  /** What it printed until it listened. */
  readonly greeting: string;
  readonly pid: number;
  stop(): Promise<void>;
}

export interface Command {
  readonly program: string;
  readonly args: readonly string[];
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Whether its standard error goes to a file on disk: it writes more there than what goes wrong. */
  readonly writesLog?: boolean;
}

/** A contestant takes about a second; `npm start` builds first. */
const startLimit = 120_000;
const stopLimit = 10_000;

/** Starts a server and waits until it has printed its address. */
export async function startServer({
  program,
  args,
  cwd,
  env,
  writesLog = false,
}: Command): Promise<ServerProcess> {
  const log = writesLog ? openLog() : undefined;
  const child = spawn(program, args, {
    cwd,
    // A limit that nothing reaches, since what it costs belongs to what is measured; and no line for each request,
    // which the other contestants do not write either.
    env: {
      RATE_LIMIT: '1000000000',
      LOG_LEVEL: 'warn',
      ...process.env,
      ...env,
      NODE_ENV: 'production',
      HOST: '127.0.0.1',
      PORT: '0',
    },
    stdio: ['ignore', 'pipe', log?.file ?? 'pipe'],
    // A group of its own, so that what `npm` starts can be stopped with it.
    detached: true,
  });
  running.add(child);
  let output = '';
  let complaints = '';
  child.once('exit', () => {
    running.delete(child);
    complaints += log?.close() ?? '';
  });
  child.stderr?.on('data', (chunk) => {
    complaints = (complaints + chunk).slice(-2_000);
  });
  const url = await new Promise<string>((settle, fail) => {
    const timer = setTimeout(() => fail(new Error(`${program} did not listen in time`)), startLimit);
    child.stdout?.on('data', (chunk) => {
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
      fail(new Error(`${program} ${args.join(' ')} ended with ${code}: ${complaints || output}`));
    });
  }).catch(async (error) => {
    await stop(child);
    throw error;
  });
  // A process without an id has not been started, and has not printed an address.
  return { url, greeting: output, pid: child.pid ?? 0, stop: () => stop(child) };
}

/** A file for what a server writes to its standard error, until the server has ended. */
function openLog() {
  const folder = mkdtempSync(join(tmpdir(), 'dovetail-log-'));
  const name = join(folder, 'log');
  const file = openSync(name, 'w');
  return {
    file,
    /** Removes it. Returns its end. */
    close() {
      closeSync(file);
      const end = readFileSync(name).subarray(-2_000).toString();
      rmSync(folder, { recursive: true });
      return end;
    },
  };
}

const running = new Set<ChildProcess>();

/** For the case that the benchmark itself is interrupted. */
export function killAll(): void {
  for (const child of running) signal(child, 'SIGKILL');
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const ended = once(child, 'exit');
  signal(child, 'SIGTERM');
  const timer = setTimeout(() => signal(child, 'SIGKILL'), stopLimit);
  await ended;
  clearTimeout(timer);
}

function signal({ pid }: ChildProcess, name: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, name);
  } catch {
    // It has ended by itself.
  }
}

/** How long, in milliseconds, nothing is asked of a process before its memory at rest is measured. */
export const rest = 125_000;

/** Memory that the process has in RAM, in MiB, or undefined where the system does not tell. */
export async function residentMemory(pid: number): Promise<number | undefined> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(status) ?? [];
  return kilobytes === undefined ? undefined : Number(kilobytes) / 1024;
}

/** Processor time that the process has used so far, in microseconds, or undefined where the system does not tell. */
export async function processorTime(pid: number): Promise<number | undefined> {
  const status = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  // The name comes second, in parentheses, and may have spaces in it; utime and stime are fields 14 and 15, in
  // hundredths of a second (proc_pid_stat(5)).
  const fields = status.slice(status.lastIndexOf(')') + 2).split(' ');
  return status === '' ? undefined : (Number(fields[11]) + Number(fields[12])) * 10_000;
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((settle) => server.listen(0, '127.0.0.1', settle));
  const address = server.address();
  await new Promise((settle) => server.close(settle));
  if (typeof address !== 'object' || address === null) throw new Error('no port is free');
  return address.port;
}
