/** Announcements that a gateway makes to itself, to know that announcements arrive. */

import { randomUUID } from 'node:crypto';
import { pause } from './waiting.ts';

/** How often, in milliseconds, it is tried whether announcements arrive. */
export const heartbeat = 2_000;
/** How long, in milliseconds, the announcement of a heartbeat may be under way once it is made. */
const longestDelivery = 2_000;

/** Announces something in the way that writes do. */
export type Announce = (payload: string) => Promise<unknown>;

/** How the announcement of a heartbeat begins, which says nothing of any change. */
const heartbeatPrefix = 'heartbeat ';

export const isHeartbeat = (payload: string): boolean => payload.startsWith(heartbeatPrefix);

export function createHeartbeats() {
  /** The heartbeat that is under way, and what to do when it arrives. */
  let expected = { payload: '', arrived: () => {} };
  return {
    /** Takes note of what arrived if it is a heartbeat. Those of other gateways are of no interest. */
    hear(payload: string): boolean {
      if (payload === expected.payload) expected.arrived();
      return isHeartbeat(payload);
    },
    /** Whether a heartbeat that is announced now arrives in time. */
    async arrives(announce: Announce, lost: AbortSignal): Promise<boolean> {
      const waiting = new AbortController();
      const stop = () => waiting.abort();
      let heard = false;
      const payload = heartbeatPrefix + randomUUID();
      expected = {
        payload,
        arrived() {
          heard = true;
          stop();
        },
      };
      lost.addEventListener('abort', stop);
      await announce(payload);
      await pause(longestDelivery, waiting.signal);
      lost.removeEventListener('abort', stop);
      return heard;
    },
  };
}
