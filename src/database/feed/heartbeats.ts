/** Heartbeats: announcements that a gateway sends to itself, as proof that announcements arrive, and up to which point. */

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { createSharedRuns } from '../sharedRuns.ts';
import { pause } from '../waiting.ts';

/** The interval between heartbeats, in milliseconds. */
export const heartbeat = 2_000;
/** How long, in milliseconds, a heartbeat may take to arrive once it is announced. */
const longestDelivery = 2_000;
/** The shortest time, in milliseconds, between two heartbeats that requests wait for: each is a write. */
const shortestGap = 5;

/** Announces something by the same mode as writes do. */
export type Announce = (payload: string) => Promise<unknown>;

/** How the payload of a heartbeat begins. It announces no change. */
const heartbeatPrefix = 'heartbeat ';

export const isHeartbeat = (payload: string): boolean => payload.startsWith(heartbeatPrefix);

export function createHeartbeats() {
  /** The heartbeats in flight, and what to call when they arrive. */
  const expected = new Map<string, () => void>();
  /** Sends a heartbeat over the present connections, and returns whether it has arrived in time. */
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
    /** Notes a heartbeat that has arrived. Returns whether the payload is one, of this gateway or of another. */
    hear(payload: string): boolean {
      expected.get(payload)?.();
      return isHeartbeat(payload);
    },
    /** Uses new connections from now on. Returns a function that sends a heartbeat and returns whether it arrives in time. */
    begin(announce: Announce, lost: AbortSignal): () => Promise<boolean> {
      arrives = () => beat(announce, lost);
      return arrives;
    },
    /** Sends a heartbeat: once it has arrived, everything that was announced before it has arrived too. */
    catchUp: createCatchUp(() => arrives()),
  };
}

/** One heartbeat serves all callers that wait when it is sent. */
function createCatchUp(arrives: () => Promise<boolean>): () => Promise<boolean> {
  let last = Number.NEGATIVE_INFINITY;
  return createSharedRuns(async () => {
    const rest = last + shortestGap - performance.now();
    if (rest > 0) await sleep(rest);
    last = performance.now();
    return arrives().catch(() => false);
  }).begin;
}
