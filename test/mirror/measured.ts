/** A gateway in a process of its own, whose memory can be measured and written to a file. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';

const gatewayModule = new URL('../../src/server/gateway.ts', import.meta.url);
const configModule = new URL('../../src/config/config.ts', import.meta.url);

/** What the process runs: the gateway, and what handles the messages of this module. */
const program = `
import { writeHeapSnapshot } from 'node:v8';
import { openGateway } from '${gatewayModule}';
import { readConfig } from '${configModule}';
const gateway = await openGateway(readConfig(process.env));
process.send({ url: gateway.url, metricsUrl: gateway.metricsUrl });
process.on('message', async ({ ask, file }) => {
  if (ask === 'heap') {
    gc();
    process.send({ heap: process.memoryUsage().heapUsed, rss: process.memoryUsage().rss });
  }
  if (ask === 'snapshot') process.send({ snapshot: writeHeapSnapshot(file) });
  if (ask === 'stop') {
    await gateway.close();
    process.disconnect();
  }
});
`;

export interface MeasuredGateway {
  readonly url: string;
  readonly metricsUrl: string | undefined;
  /** Its memory after a garbage collection, in megabytes. */
  memory(): Promise<{ readonly heap: number; readonly rss: number }>;
  /** Writes a snapshot of its heap to a file. */
  snapshot(file: string): Promise<void>;
  stop(): Promise<void>;
}

export interface MeasuredOptions {
  readonly settings: Readonly<Record<string, string>>;
  /** The file of its log; without one there is none. */
  readonly log?: string;
}

export async function startGateway({ settings, log }: MeasuredOptions): Promise<MeasuredGateway> {
  const logTo = openSync(log ?? '/dev/null', 'a');
  const { DATABASE_URL, DATA_DIR, UPSTREAM_URL, UPSTREAM_TOKEN, ...inherited } = process.env;
  const child = spawn(
    process.execPath,
    ['--import', 'tsx', '--expose-gc', '--input-type=module', '--eval', program],
    {
      env: {
        ...inherited,
        PORT: '0',
        LOG_LEVEL: 'warn',
        RATE_LIMIT: '0',
        RATE_LIMIT_ANONYMOUS: '0',
        ...settings,
      },
      stdio: ['ignore', 'ignore', log === undefined ? 'inherit' : logTo, 'ipc'],
    },
  );
  closeSync(logTo);
  const { url, metricsUrl } = await nextMessage(child, 'url');
  return {
    url: String(url),
    metricsUrl: metricsUrl === undefined ? undefined : String(metricsUrl),
    async memory() {
      child.send({ ask: 'heap' });
      const { heap, rss } = await nextMessage(child, 'heap');
      return { heap: Number(heap) / 2 ** 20, rss: Number(rss) / 2 ** 20 };
    },
    async snapshot(file) {
      child.send({ ask: 'snapshot', file });
      await nextMessage(child, 'snapshot');
    },
    async stop() {
      if (child.exitCode !== null) return;
      const ended = once(child, 'exit');
      child.send({ ask: 'stop' });
      const cut = setTimeout(() => child.kill('SIGKILL'), 15_000);
      await ended;
      clearTimeout(cut);
    },
  };
}

/** The next message of the process that has this field. Fails if the process ends before. */
function nextMessage(child: ChildProcess, field: string): Promise<Record<string, unknown>> {
  return new Promise((settle, fail) => {
    const onExit = (code: number | null) => fail(new Error(`the gateway ended with ${code}`));
    const onMessage = (message: unknown) => {
      if (typeof message !== 'object' || message === null || !(field in message)) return;
      child.off('exit', onExit).off('message', onMessage);
      settle({ ...message });
    };
    child.on('exit', onExit).on('message', onMessage);
  });
}

/** Whether a file contains a text. The file may be larger than any string. */
export async function has(file: string, text: string): Promise<boolean> {
  // A snapshot of a heap has some hundred megabytes.
  return (await readFile(file)).includes(text);
}

/** A row of a table. */
export const row = (cells: readonly (string | number)[]): void => {
  process.stdout.write(`| ${cells.join(' | ')} |\n`);
};

/** The head of a table. */
export function head(cells: readonly string[]): void {
  row(cells);
  row(cells.map(() => '---'));
}

export const seconds = (milliseconds: number): string => (milliseconds / 1000).toFixed(1);
