/** Starts the gateway, says how to reach it, and stops it when told to. */

import cluster from 'node:cluster';
import { availableParallelism } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Config, readConfig } from '../config.ts';
import { createLogger } from '../telemetry/log.ts';
import { beWorker, startWorkers, tellServing } from './cluster.ts';
import { openGateway } from './gateway.ts';

/**
 * Serves until SIGINT or SIGTERM.
 * @param options settings that the command line gives, which go before those of the environment.
 */
export async function serve(options: Readonly<Record<string, string>>): Promise<void> {
  if (cluster.isWorker) beWorker();
  const config = readConfig({ ...process.env, ...options });
  let stop = () => {};
  const stopped = new Promise<void>((settle) => {
    stop = settle;
  });
  process.once('SIGINT', stop).once('SIGTERM', stop);
  const opening = open(config);
  stopped.then(() => endUnlessOpened(opening, config));
  const gateway = await opening;
  if (!gateway) {
    process.exitCode = 1;
    return;
  }
  if (cluster.isWorker) tellServing({ url: gateway.url });
  else process.stdout.write(welcome(config, gateway));
  let failed = false;
  gateway.failure?.then(() => {
    failed = true;
    stop();
  });
  await stopped;
  await gateway.close();
  // Whoever watches over the process is to start it again; a timer of the engine's could keep it from ending.
  if (failed) process.exit(1);
}

/** How long, in milliseconds, a start that is told to stop may go on, so as not to leave half of a new database. */
const longestStart = 5_000;

/** Ends a process that was told to stop while it started, unless it comes to serve in time and closes as it should. */
async function endUnlessOpened(opening: Promise<unknown>, { DATABASE_URL }: Config): Promise<void> {
  // What a server has not committed it forgets.
  const longest = DATABASE_URL === undefined ? longestStart : 0;
  const over = opening.then(
    () => true,
    () => true,
  );
  if (await Promise.race([over, sleep(longest, false, { ref: false })])) return;
  process.stderr.write('Stopped before the gateway was ready.\n');
  process.exit(0);
}

interface Serving {
  readonly url: string;
  readonly metricsUrl?: string | undefined;
  readonly demoToken?: string | undefined;
  readonly failure?: Promise<void>;
  close(): Promise<void>;
}

async function open(config: Config): Promise<Serving | undefined> {
  const count = workersOf(config);
  if (count === 1 || cluster.isWorker) return openGateway(config);
  const workers = await startWorkers(count, createLogger(config.LOG_LEVEL));
  if (!workers || config.METRICS_PORT === undefined) return workers;
  const { serveMetrics } = await import('../telemetry/metricsServer.ts');
  const metrics = await serveMetrics(config).catch(async (error) => {
    await workers.close();
    throw error;
  });
  return {
    url: workers.url,
    metricsUrl: metrics.url,
    async close() {
      await metrics.close();
      await workers.close();
    },
  };
}

/** The embedded database runs inside the one process that may have its folder open. */
function workersOf({ DATABASE_URL, WORKERS }: Config): number {
  if (DATABASE_URL === undefined) return 1;
  return WORKERS === 'auto' ? availableParallelism() : WORKERS;
}

function welcome(config: Config, { url, metricsUrl, demoToken }: Serving): string {
  const token = demoToken ?? 'YOUR_API_TOKEN';
  const workers = workersOf(config);
  const notes = [
    ...(demoToken === undefined ? [] : [`  Token     ${demoToken}  (of the demo account)`]),
    ...(metricsUrl === undefined ? [] : [`  Metrics   ${metricsUrl}`]),
    ...(workers > 1 ? [`  Workers   ${workers}`] : []),
    ...(config.WORKERS !== workers && config.DATABASE_URL === undefined
      ? ['  Workers   1: the embedded database belongs to one process. Set DATABASE_URL for more.']
      : []),
  ];
  return `
Dovetail is running.

  GraphiQL  ${url}/graphql
  REST      ${url}/api/v1
${notes.map((note) => `${note}\n`).join('')}
  curl ${url}/graphql -H 'Authorization: Bearer ${token}' -H 'Content-Type: application/json' -d '{"query":"{ viewer { username } }"}'
  curl ${url}/api/v1/dtt/templates/active -H 'Authorization: Bearer ${token}'

`;
}
