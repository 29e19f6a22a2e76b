/** Keeps a standby connected: reconnects with backoff after each failure, and polls its state while it is healthy. */

import { errorText } from '../../errors.ts';
import { createSignal, pause } from '../waiting.ts';
import { connectStandby, type Standby, type StandbyOptions, standbyName } from './standby.ts';

/** The backoff between attempts to connect, in milliseconds. */
const shortestDelay = 100;
const longestDelay = 5_000;

/** How often, in milliseconds, the state of a standby is polled. */
const heartbeat = 500;

export interface StandbyConnection {
  /** Its host and port, without a password. */
  readonly name: string;
  /** The standby, if it is connected and healthy. */
  current(): Standby | undefined;
  /** Its state in words, for logs and metrics. */
  status(): string;
  /** Settles when the first attempt to connect has ended. */
  readonly tried: Promise<void>;
  close(): Promise<void>;
}

/** Called with the state of a standby, in words, whenever it has changed. */
export type OnStandbyChange = (name: string, status: string, isReadFrom: boolean) => void;

export function keepConnected(options: StandbyOptions, onChange: OnStandbyChange): StandbyConnection {
  const name = standbyName(options.url);
  const closing = new AbortController();
  const { signal } = closing;
  const { promise: tried, settle } = createSignal();
  let current: Standby | undefined;
  let status = '';

  function setStatus(now: string, isReadFrom = false): void {
    if (now !== status && !signal.aborted) onChange(name, now, isReadFrom);
    status = now;
  }

  /** Connects, and returns why it is no longer connected. */
  async function connectOnce(): Promise<string> {
    const standby = await connectStandby(options);
    current = standby;
    setStatus('well', true);
    settle();
    // Without reads, nothing else would notice for a while that the standby is gone.
    while (standby.isHealthy && (await pause(heartbeat, signal))) await standby.refresh().catch(() => {});
    standby.close();
    return (await standby.end).message;
  }

  async function reconnect(): Promise<void> {
    let delay = shortestDelay;
    while (!signal.aborted) {
      const began = performance.now();
      setStatus(await connectOnce().catch(errorText));
      settle();
      if (performance.now() - began > longestDelay) delay = shortestDelay;
      await pause(delay, signal);
      delay = Math.min(delay * 2, longestDelay);
    }
  }

  const running = reconnect();
  return {
    name,
    current: () => (current?.isHealthy ? current : undefined),
    status: () => status,
    tried,
    async close() {
      closing.abort();
      await running;
    },
  };
}
