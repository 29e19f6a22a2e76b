/**
 * A home automation integration: once a minute it asks eleven paths, one after the other, and shows what it got as
 * sensors. Of a session that is new it asks for all, and of OSSM devices what the service may have beside them.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { type Client, listOf, recordOf } from './client.ts';

/** The eleven, in their order. */
export const polledPaths = [
  '/dtt',
  '/dtt/sessions/latest',
  '/dtt/templates/active',
  '/dtt/templates',
  '/ossm',
  '/lkbx',
  '/lkbx/sessions',
  '/lkbx/sessions/latest',
  '/lkbx/templates',
  '/lkbx/templates/active',
  '/lkbx/session/current',
] as const;

const ofOssm = ['/ossm/sessions', '/ossm/patterns', '/ossm/settings', '/ossm/firmware'] as const;

export interface HomeAutomation {
  /** Asks for everything once. */
  poll(): Promise<void>;
  /** Polls until it is told to stop. */
  run(interval: number, signal: AbortSignal): Promise<void>;
}

export function createHomeAutomation(client: Client): HomeAutomation {
  let lastSession: unknown;

  async function poll(): Promise<void> {
    for (const path of polledPaths) {
      const told = await client.get(path);
      if (path === '/dtt/sessions/latest') await askForNew(recordOf(told)?.id);
      if (path === '/ossm' && listOf(told).length > 0) for (const more of ofOssm) await client.get(more);
    }
  }

  async function askForNew(id: unknown): Promise<void> {
    if (id === undefined || id === lastSession) return;
    lastSession = id;
    await client.get(`/dtt/sessions/${id}`);
  }

  return {
    poll,
    async run(interval, signal) {
      while (!signal.aborted) {
        const next = Date.now() + interval;
        await poll();
        await sleep(Math.max(0, next - Date.now()), undefined, { signal }).catch(() => {});
      }
    },
  };
}
