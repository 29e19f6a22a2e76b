/** A gateway as it runs in production: a process that somebody starts again when it ends. */

import { type ChildProcess, spawn } from 'node:child_process';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../support/postgres.ts';

const cli = resolve('dist/cli/cli.js');

/** How long a supervisor waits before it starts a process again, in milliseconds. */
const pause = 300;

export interface WatchedGateway {
  readonly url: string;
  /** The exit codes of the processes that ended by themselves, and what they wrote last. */
  readonly exits: readonly { readonly code: number | null; readonly lastLine: string }[];
  pid(): number;
  /** Asks the process to clean up, where it was started with `tellHeap`: what its heap has then, in bytes. */
  heap(): Promise<number>;
  /** Kills the process that is running now; another takes its place. */
  kill(): void;
  isReady(): Promise<boolean>;
  stop(): Promise<void>;
}

/** Arguments of Node with which a process tells how much of its heap is in use, cleaned up, for each SIGUSR2. */
export const tellHeap = [
  '--expose-gc',
  '--import',
  `data:text/javascript,process.on('SIGUSR2',()=>{gc();process.stderr.write('heap '+process.memoryUsage().heapUsed+'\\n')})`,
];

export async function watchGateway(
  settings: Readonly<Record<string, string>>,
  execArgv: readonly string[] = [],
): Promise<WatchedGateway> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const exits: { code: number | null; lastLine: string }[] = [];
  let child: ChildProcess;
  let stopping = false;
  let written = '';
  let ended: Promise<void>;

  function start(): void {
    const { DATABASE_URL, DATA_DIR, UPSTREAM_URL, UPSTREAM_TOKEN, ...inherited } = process.env;
    child = spawn(process.execPath, [...execArgv, cli, 'serve'], {
      env: {
        ...inherited,
        PORT: String(port),
        LOG_LEVEL: 'fatal',
        RATE_LIMIT: '0',
        RATE_LIMIT_ANONYMOUS: '0',
        ...settings,
      },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    written = '';
    child.stderr?.on('data', (data) => {
      written = (written + data).slice(-2_000);
    });
    ended = new Promise((settle) => {
      child.once('close', (code, signal) => {
        if (signal === null && !stopping) exits.push({ code, lastLine: lastLineOf(written) });
        settle();
        if (!stopping) setTimeout(() => stopping || start(), pause);
      });
    });
  }

  start();
  return {
    url,
    exits,
    pid: () => child.pid ?? 0,
    async heap() {
      written = '';
      child.kill('SIGUSR2');
      await until('it tells its heap', () => /heap \d+\n/.test(written));
      return Number(/heap (\d+)/.exec(written)?.[1]);
    },
    kill: () => child.kill('SIGKILL'),
    isReady: () =>
      fetch(`${url}/readyz`).then(
        ({ status }) => status === 200,
        () => false,
      ),
    async stop() {
      stopping = true;
      child.kill('SIGTERM');
      const cut = setTimeout(() => child.kill('SIGKILL'), 10_000);
      await ended;
      clearTimeout(cut);
    },
  };
}

/** What a fatal line of the log says, or the line itself. */
function lastLineOf(text: string): string {
  const line = text.trimEnd().split('\n').at(-1) ?? '';
  return /"msg":"([^"]*)"/.exec(line)?.[1] ?? line;
}

/** Waits, looking often. */
export async function until(
  what: string,
  isSo: () => boolean | Promise<boolean>,
  milliseconds = 30_000,
): Promise<void> {
  const end = performance.now() + milliseconds;
  while (!(await isSo())) {
    if (performance.now() > end) throw new Error(`it took more than ${milliseconds} ms: ${what}`);
    await sleep(20);
  }
}
