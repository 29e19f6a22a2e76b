/** Starts the gateway, says how to reach it, and stops it when told to. */

import cluster from 'node:cluster';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Config, readConfig, workersOf } from '../config/config.ts';
import { checkPort } from '../http/port.ts';
import { createLogger, standardError } from '../telemetry/log.ts';
import { type Banner, bannerOf } from './banner.ts';
import { type Started, startWorkers } from './cluster.ts';
import { openGateway } from './gateway.ts';

/**
 * Serves until SIGINT or SIGTERM.
 * @param options settings that the command line gives, which go before those of the environment.
 */
export async function serve(options: Readonly<Record<string, string>>): Promise<void> {
  // The channel to the process that started a worker must not keep the worker from ending.
  if (cluster.isWorker) process.channel?.unref();
  const config = readConfig({ ...process.env, ...options });
  const stopping = new AbortController();
  const stopped = once(stopping.signal, 'abort');
  const stop = () => stopping.abort();
  // It may come twice: from a terminal and from npm, or at a worker that was signalled with all processes. Without a listener
  // the second one would end the process at once.
  process.on('SIGINT', stop).on('SIGTERM', stop);
  // From a terminal it means that the terminal is gone. Elsewhere it asks other programs to read their files again, which this one
  // does by itself.
  process.on('SIGHUP', () => {});
  if (process.stdin.isTTY)
    process.once('SIGHUP', () => {
      stop();
      // Node would abort, since it cannot put back the state of the terminal.
      process.once('exit', () => process.kill(process.pid, 'SIGKILL'));
    });
  const opening = open(config, stopping.signal);
  // Of several workers the first serve already while others start: all are told to stop, and waited for.
  if (!startsWorkers(config)) stopped.then(() => endUnlessOpened(opening, config));
  const gateway = await opening;
  if (!gateway) {
    if (stopping.signal.aborted) sayStopped();
    else process.exitCode = 1;
    return;
  }
  if (cluster.isWorker) process.send?.({ url: gateway.url, hasUsers: gateway.hasUsers } satisfies Started);
  else process.stdout.write(bannerOf(config, { ...gateway, workers: workersOf(config) }));
  let failed = false;
  gateway.failure?.then(() => {
    failed = true;
    stop();
  });
  await stopped;
  await gateway.close();
  // A supervisor starts it again; a timer of the engine's could keep it from ending.
  if (failed) process.exit(1);
}

/** How long, in milliseconds, a start that is told to stop may go on, so as not to leave half of a new database. */
const longestStart = 5_000;

/** Ends a process that was told to stop while it started, unless it serves in time and closes as it should. */
async function endUnlessOpened(opening: Promise<unknown>, { DATABASE_URL }: Config): Promise<void> {
  // What a server has not committed it forgets.
  const longest = DATABASE_URL === undefined ? longestStart : 0;
  const over = opening.then(Boolean, Boolean).then(() => true);
  if (await Promise.race([over, sleep(longest, false, { ref: false })])) return;
  // The process that started a worker says it for all of them.
  if (!cluster.isWorker) sayStopped();
  process.exit(0);
}

function sayStopped(): void {
  process.stderr.write('Stopped before the gateway was ready.\n');
}

/** Whether other processes serve, which this one starts. */
const startsWorkers = (config: Config) => !cluster.isWorker && workersOf(config) > 1;

interface Serving extends Omit<Banner, 'workers'> {
  readonly failure?: Promise<void>;
  close(): Promise<void>;
}

/** @returns undefined when it was told to stop before all workers served, or one ended before, which has said why. */
async function open(config: Config, stopping: AbortSignal): Promise<Serving | undefined> {
  const { HOST, PORT, METRICS_PORT } = config;
  if (!cluster.isWorker) {
    // Before anything is made: a second gateway that was started by mistake makes no second database. 0 is any free port.
    if (PORT) await checkPort(HOST, 'PORT', PORT);
    if (METRICS_PORT) await checkPort(HOST, 'METRICS_PORT', METRICS_PORT);
  }
  if (!startsWorkers(config)) return openGateway(config);
  const logger = createLogger(config.LOG_LEVEL, await standardError());
  const workers = await startWorkers(workersOf(config), logger, stopping);
  if (!workers) return undefined;
  if (config.METRICS_PORT === undefined) return workers;
  const { serveMetrics } = await import('../telemetry/metrics.ts');
  const metrics = await serveMetrics(config).catch(async (error) => {
    await workers.close();
    throw error;
  });
  return {
    url: workers.url,
    hasUsers: workers.hasUsers,
    metricsUrl: metrics.url,
    async close() {
      await metrics.close();
      await workers.close();
    },
  };
}
