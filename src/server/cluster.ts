/** All cores: worker processes that share one port, watched over by the process that started them. */

import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import type { Logger } from 'pino';

/** A worker that lived for less than this many milliseconds is replaced only after as many more. */
const pause = 1_000;

/** The message of a worker that serves. */
export interface Started {
  readonly url: string;
  /** Whether anybody has an account in the database. */
  readonly hasUsers: boolean;
}

/**
 * Starts worker processes, which run the command line of this one, and replaces those that die.
 * @param stopping aborted to stop the workers while they start. Once all of them serve, `close` stops them.
 * @returns undefined if a worker ended before all of them served (it has logged why), or if `stopping` was aborted.
 */
export async function startWorkers(count: number, logger: Logger, stopping?: AbortSignal) {
  let state: 'starting' | 'serving' | 'closing' = 'starting';
  const running = new Set<Worker>();

  function start(): Promise<Started | undefined> {
    const worker = cluster.fork();
    const began = performance.now();
    running.add(worker);
    return new Promise((settle) => {
      // A worker sends other messages as well, with figures for metrics.
      worker.on('message', (sent: Started | object) => 'url' in sent && settle(sent));
      worker.once('exit', (code, signal) => {
        running.delete(worker);
        settle(undefined);
        if (state !== 'serving') return;
        logger.error({ worker: worker.process.pid, code, signal }, 'a worker died, and is replaced');
        const lived = performance.now() - began;
        setTimeout(() => state === 'closing' || start(), lived < pause ? pause : 0);
      });
    });
  }

  /** Lets each worker finish its requests, and waits until all have ended. */
  async function close(): Promise<void> {
    state = 'closing';
    const ends = [...running].map((worker) => once(worker, 'exit'));
    for (const worker of running) worker.process.kill('SIGTERM');
    await Promise.all(ends);
  }

  const stop = () => void close();
  stopping?.addEventListener('abort', stop);
  // One after the other: the first applies the migrations.
  let told: Started = { url: '', hasUsers: false };
  for (let started = 0; started < count; started++) {
    const serving = stopping?.aborted ? undefined : await start();
    if (!serving || stopping?.aborted) {
      await close();
      return undefined;
    }
    told = serving;
  }
  stopping?.removeEventListener('abort', stop);
  state = 'serving';
  // One may have died while the others started.
  while (running.size < count) start();
  return { ...told, close };
}
