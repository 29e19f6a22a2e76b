/** Announcements that a gateway makes to itself, to know that announcements arrive, and up to where. */

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { inBatches } from '../inBatches.ts';
import { pause } from '../waiting.ts';

/** How often, in milliseconds, it is tried whether announcements arrive. */
export const heartbeat = 2_000;
/** How long, in milliseconds, the announcement of a heartbeat may be under way once it is made. */
const longestDelivery = 2_000;
/** How long, in milliseconds, it is at least between two of those that somebody waits for: each is a write. */
const shortestGap = 5;

/** Announces something in the way that writes do. */
export type Announce = (payload: string) => Promise<unknown>;

/** How the announcement of a heartbeat begins, which says nothing of any change. */
const heartbeatPrefix = 'heartbeat ';

export const isHeartbeat = (payload: string): boolean => payload.startsWith(heartbeatPrefix);

export function createHeartbeats() {
  /** The heartbeats that are under way, and what to do when they arrive. */
  const expected = new Map<string, () => void>();
  /** Announces a heartbeat over the connections that there are, and says whether it has arrived in time. */
  let arrives = async () => false;

  async function beat(announce: Announce, lost: AbortSignal): Promise<boolean> {
    const waiting = new AbortController();
    const stop = () => waiting.abort();
    let heard = false;
    const payload = heartbeatPrefix + randomUUID();
    expected.set(payload, () => {
      heard = true;
      stop();
    });
    lost.addEventListener('abort', stop);
    try {
      await announce(payload);
      await pause(longestDelivery, waiting.signal);
    } finally {
      lost.removeEventListener('abort', stop);
      expected.delete(payload);
    }
    return heard;
  }

  return {
    /** Takes note of what arrived if it is a heartbeat. Those of other gateways are of no interest. */
    hear(payload: string): boolean {
      expected.get(payload)?.();
      return isHeartbeat(payload);
    },
    /** Begins with new connections. Gives what says whether a heartbeat that is announced now arrives in time. */
    begin(announce: Announce, lost: AbortSignal): () => Promise<boolean> {
      arrives = () => beat(announce, lost);
      return arrives;
    },
    /** The same of the connections that there are: what was announced before has been heard then. */
    catchUp: createCatchUp(() => arrives()),
  };
}

/** One heartbeat is enough for all who wait when it begins. */
function createCatchUp(arrives: () => Promise<boolean>): () => Promise<boolean> {
  let last = Number.NEGATIVE_INFINITY;
  return inBatches(async () => {
    const rest = last + shortestGap - performance.now();
    if (rest > 0) await sleep(rest);
    last = performance.now();
    return arrives().catch(() => false);
  });
}
