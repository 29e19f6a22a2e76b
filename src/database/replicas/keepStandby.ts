/** A standby over all its lives: connected to again and again, and asked how it is while it is well. */

import { createSignal, pause } from '../waiting.ts';
import { connectStandby, type Standby, type StandbyOptions } from './standby.ts';

const shortestDelay = 100;
const longestDelay = 5_000;

/** How often, in milliseconds, a standby is asked how it is though nobody reads. */
const heartbeat = 500;

export interface KeptStandby {
  /** Where it is, as the settings name it, without a password. */
  readonly name: string;
  /** Its life, if it is well. */
  current(): Standby | undefined;
  /** The lives from which somebody may still know something: the last one, and the one before. */
  lives(): readonly Standby[];
  /** How it is, in words. */
  status(): string;
  /** Settles once it was tried for the first time. */
  readonly tried: Promise<void>;
  close(): Promise<void>;
}

/** @param onChange told of how it is, whenever that has changed. */
export function keepStandby(
  options: StandbyOptions,
  name: string,
  onChange: (name: string, status: string) => void,
): KeptStandby {
  const closing = new AbortController();
  const { signal } = closing;
  let current: Standby | undefined;
  let lives: readonly Standby[] = [];
  let status = '';
  const { promise: tried, settle } = createSignal();

  function say(now: string): void {
    if (now === status) return;
    status = now;
    if (!signal.aborted) onChange(name, now);
  }

  /** Lives through one life of it. */
  async function live(): Promise<void> {
    const standby = await connectStandby(options);
    const release = closeWith(standby, signal);
    current = standby;
    lives = [standby, ...lives].slice(0, 2);
    say('well');
    settle();
    const asking = askAgain(standby, signal);
    const reason = await standby.end;
    release();
    say(reason.message);
    current = undefined;
    await asking;
  }

  async function liveAgain(): Promise<void> {
    let delay = shortestDelay;
    while (!signal.aborted) {
      const began = performance.now();
      await live().catch((error: unknown) => say(error instanceof Error ? error.message : String(error)));
      settle();
      if (performance.now() - began > longestDelay) delay = shortestDelay;
      await pause(delay, signal);
      delay = Math.min(delay * 2, longestDelay);
    }
  }

  const living = liveAgain();
  return {
    name,
    current: () => (current?.isHealthy ? current : undefined),
    lives: () => lives,
    status: () => status,
    tried,
    async close() {
      closing.abort();
      await living;
    },
  };
}

/** Closes a standby with the signal, which may have been aborted while it connected. Returns what ends that. */
function closeWith(standby: Standby, signal: AbortSignal): () => void {
  const stop = () => standby.close();
  if (signal.aborted) stop();
  signal.addEventListener('abort', stop, { once: true });
  return () => signal.removeEventListener('abort', stop);
}

/** Nobody else may ask for a while, and find out that it is gone. */
async function askAgain(standby: Standby, signal: AbortSignal): Promise<void> {
  while (standby.isHealthy && (await pause(heartbeat, signal))) await standby.refresh().catch(() => {});
}
