/** Starts the gateway, says how to reach it, and stops it when told to. */

import cluster from 'node:cluster';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { type Config, readConfig, workersOf } from '../config/config.ts';
import { override } from '../config/environment.ts';
import { closeAll } from '../database/closing.ts';
import { errorText } from '../errors.ts';
import type { Hooks } from '../extensionPoints.ts';
import { extensions } from '../extensions/extensions.ts';
import { checkPort } from '../http/port.ts';
import { createLogger, standardError } from '../telemetry/log.ts';
import { type Banner, bannerOf } from './banner.ts';
import { type Started, startWorkers } from './cluster.ts';
import { openGateway } from './gateway.ts';

/**
 * Serves until SIGINT or SIGTERM.
 * @param options settings of the command line. They override the environment.
 */
export async function serve(options: Readonly<Record<string, string>>): Promise<void> {
  // The channel to the process that started a worker must not keep the worker from ending.
  if (cluster.isWorker) process.channel?.unref();
  const config = readConfig(override(process.env, options), extensions);
  const stopping = new AbortController();
  const stopped = once(stopping.signal, 'abort');
  const stop = () => stopping.abort();
  // A signal may come twice: from the terminal and from npm, or from the terminal and the primary process. Without a listener the
  // second one would end the process at once.
  process.on('SIGINT', stop).on('SIGTERM', stop);
  // Without a terminal, SIGHUP asks a program to read its files again, which the gateway does by itself.
  if (!process.stdin.isTTY) process.on('SIGHUP', () => {});
  // Programs that rotate logs send it. Node would open its inspector, which runs any code of a local user's.
  process.on('SIGUSR1', () => {});
  const opening = open(config, stopping.signal);
  let isOpening = true;
  // With several workers, some serve already while others start: each is told to stop, and waited for.
  if (!startsWorkers(config)) stopped.then(() => isOpening && endStart());
  const gateway = await opening;
  isOpening = false;
  if (!gateway) {
    if (stopping.signal.aborted) sayStopped();
    else process.exitCode = 1;
    return;
  }
  if (cluster.isWorker) process.send?.({ url: gateway.url, hasUsers: gateway.hasUsers } satisfies Started);
  else {
    await writeUrl(config, gateway.url);
    process.stdout.write(bannerOf(config, { ...gateway, workers: workersOf(config) }));
  }
  let failed = false;
  gateway.failure?.then(() => {
    failed = true;
    stop();
  });
  await stopped;
  await gateway.close(failed ? 0 : config.SHUTDOWN_DELAY * 1_000);
  // The process ends, so that a supervisor starts it again. A timer of the engine could otherwise keep it alive.
  if (failed) process.exit(1);
}

/** The gateway serves as well where the file cannot be written, such as in a container that may write nothing. */
async function writeUrl({ WRITE_URL_TO: file }: Config, url: string): Promise<void> {
  if (file === undefined) return;
  await writeFile(file, url).catch((error) => {
    process.stderr.write(`WRITE_URL_TO cannot be written: ${errorText(error)}.\n`);
  });
}

/** Ends a process that was told to stop while it started: the next start removes a new database that is not complete. */
function endStart(): never {
  // The process that started a worker says it for all of them.
  if (!cluster.isWorker) sayStopped();
  process.exit(0);
}

function sayStopped(): void {
  process.stderr.write('Stopped before the gateway was ready.\n');
}

/** Whether this process starts workers, which serve. */
const startsWorkers = (config: Config) => !cluster.isWorker && workersOf(config) > 1;

interface Serving extends Omit<Banner, 'workers'> {
  readonly failure?: Promise<void>;
  /** @param delay milliseconds in which requests are still taken before. Workers have it from their own settings. */
  close(delay: number): Promise<void>;
}

/** @returns undefined if it was told to stop before all workers served, or if one ended before (it has logged why). */
async function open(config: Config, stopping: AbortSignal): Promise<Serving | undefined> {
  const { HOST, PORT } = config;
  // First of all, so that a second gateway that was started by mistake creates no database. 0 is any free port.
  if (!cluster.isWorker && PORT) await checkPort(HOST, 'PORT', PORT);
  if (!startsWorkers(config)) return openGateway(config);
  const logger = createLogger(config.LOG_LEVEL, await standardError());
  const workers = await startWorkers(workersOf(config), logger, stopping);
  if (!workers) return undefined;
  const opened: Pick<Hooks, 'lines' | 'close'>[] = [];
  // Workers go on serving for the delay, and are watched until they end.
  const close = (errors?: unknown[]) => closeAll([workers, ...opened], errors);
  try {
    for (const extension of extensions) {
      const hooks = await extension.openPrimary?.(config, workers.url);
      if (hooks) opened.unshift(hooks);
    }
  } catch (error) {
    await close([error]);
  }
  return { ...workers, lines: opened.flatMap(({ lines = [] }) => lines), close: () => close() };
}
