/**
 * A home automation integration: once a minute it requests eleven paths, one after the other, and shows the responses as
 * sensors. When there is a new session it requests the whole of it, and when there are OSSM devices, further paths about them.
 */

import { type Client, listOf, recordOf } from './client.ts';

/** The eleven paths, in their order. */
const polledPaths = [
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

const ossmPaths = ['/ossm/sessions', '/ossm/patterns', '/ossm/settings', '/ossm/firmware'] as const;

export function createHomeAutomation(client: Client) {
  let lastSession: unknown;

  /** Requests every path once. */
  async function poll(): Promise<void> {
    for (const path of polledPaths) {
      const response = await client.get(path);
      if (path === '/dtt/sessions/latest') await getIfNew(recordOf(response)?.id);
      if (path === '/ossm' && listOf(response).length > 0)
        for (const ossmPath of ossmPaths) await client.get(ossmPath);
    }
  }

  async function getIfNew(id: unknown): Promise<void> {
    if (id === undefined || id === lastSession) return;
    lastSession = id;
    await client.get(`/dtt/sessions/${id}`);
  }

  return { poll };
}
