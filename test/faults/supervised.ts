/** A gateway under a supervisor, as in production: its process is started again whenever it ends. */

import { type ChildProcess, spawn } from 'node:child_process';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../support/freePort.ts';

const cli = resolve('bin/dovetail.js');

/** In milliseconds: how long the supervisor waits before it starts a process again. */
const pause = 300;

export interface SupervisedGateway {
  readonly url: string;
  /** The exit codes of the processes that ended by themselves, and the last line that each wrote. */
  readonly exits: readonly { readonly code: number | null; readonly lastLine: string }[];
  /** Kills the running process; the supervisor starts another. */
  kill(): void;
  isReady(): Promise<boolean>;
  stop(): Promise<void>;
}

export async function superviseGateway(
  settings: Readonly<Record<string, string>>,
): Promise<SupervisedGateway> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const exits: { code: number | null; lastLine: string }[] = [];
  let child: ChildProcess;
  let stopping = false;
  let written = '';
  let ended: Promise<void>;

  function start(): void {
    const { DATABASE_URL, DATA_DIR, UPSTREAM_URL, UPSTREAM_TOKEN, ...inherited } = process.env;
    child = spawn(process.execPath, [cli, 'serve'], {
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

/** The message of a fatal log line, or the line itself. */
function lastLineOf(text: string): string {
  const line = text.trimEnd().split('\n').at(-1) ?? '';
  return /"msg":"([^"]*)"/.exec(line)?.[1] ?? line;
}

/** Waits until the condition is true, which is checked every 20 ms. @throws if that takes too long. */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  milliseconds = 30_000,
): Promise<void> {
  const end = performance.now() + milliseconds;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`it took more than ${milliseconds} ms: ${what}`);
    await sleep(20);
  }
}
