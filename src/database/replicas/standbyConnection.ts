/** Keeps a standby connected: reconnects with backoff after each failure, and polls its state while it is healthy. */

import { createSignal, pause } from '../waiting.ts';
import { connectStandby, type Standby, type StandbyOptions } from './standby.ts';

/** The backoff between attempts to connect, in milliseconds. */
const shortestDelay = 100;
const longestDelay = 5_000;

/** How often, in milliseconds, the state of a standby is polled when nobody reads from it. */
const heartbeat = 500;

export interface StandbyConnection {
  /** Its host and port, without a password. */
  readonly name: string;
  /** The standby, if it is connected and healthy. */
  current(): Standby | undefined;
  /** The standby as it was connected the last two times: viewers may have seen there what the primary does not show yet. */
  recent(): readonly Standby[];
  /** Its state in words, for logs and metrics. */
  status(): string;
  /** Settles when the first attempt to connect has ended. */
  readonly tried: Promise<void>;
  close(): Promise<void>;
}

/** Called with the state of a standby, in words, whenever it has changed. */
export type OnStandbyChange = (name: string, status: string, isReadFrom: boolean) => void;

export function keepConnected(
  options: StandbyOptions,
  name: string,
  onChange: OnStandbyChange,
): StandbyConnection {
  const closing = new AbortController();
  const { signal } = closing;
  let current: Standby | undefined;
  let recent: readonly Standby[] = [];
  let status = '';
  const { promise: tried, settle } = createSignal();

  function setStatus(now: string, isReadFrom = false): void {
    if (now !== status && !signal.aborted) onChange(name, now, isReadFrom);
    status = now;
  }

  /** Connects, and returns when the connection has ended. */
  async function connectOnce(): Promise<void> {
    const standby = await connectStandby(options);
    const release = closeWith(standby, signal);
    current = standby;
    recent = [standby, ...recent].slice(0, 2);
    setStatus('well', true);
    settle();
    const polling = pollState(standby, signal);
    const reason = await standby.end;
    release();
    setStatus(reason.message);
    current = undefined;
    await polling;
  }

  async function reconnect(): Promise<void> {
    let delay = shortestDelay;
    while (!signal.aborted) {
      const began = performance.now();
      await connectOnce().catch((error: unknown) =>
        setStatus(error instanceof Error ? error.message : String(error)),
      );
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
    recent: () => recent,
    status: () => status,
    tried,
    async close() {
      closing.abort();
      await running;
    },
  };
}

/** Closes a standby when the signal is aborted, which may have happened while it connected. Returns a function to undo that. */
function closeWith(standby: Standby, signal: AbortSignal): () => void {
  const stop = () => standby.close();
  if (signal.aborted) stop();
  signal.addEventListener('abort', stop, { once: true });
  return () => signal.removeEventListener('abort', stop);
}

/** Without reads, nothing else would notice for a while that the standby is gone. */
async function pollState(standby: Standby, signal: AbortSignal): Promise<void> {
  while (standby.isHealthy && (await pause(heartbeat, signal))) await standby.refresh().catch(() => {});
}
