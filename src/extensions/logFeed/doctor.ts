/** The check of how a server announces changes. */

import { readProgress } from '../../database/migrate.ts';
import type { ExaminedServer, Found } from '../../extensionPoints.ts';
import { checkReplicationSlot, readFeedSetup } from './announceMode.ts';

/** How changes are announced. The log of a start says why. */
export async function checkAnnouncing({ client, direct, server }: ExaminedServer): Promise<Found> {
  if ((await readProgress(client)).pending.length > 0) return undefined;
  const { mode, walLevel, isPublished } = await readFeedSetup(direct.client);
  if (mode === 'notify' || walLevel !== 'logical') return 'by NOTIFY';
  const lack = isPublished
    ? await checkReplicationSlot(server)
    : { says: 'there is no publication dovetail', advice: 'As the owner: CREATE PUBLICATION dovetail;' };
  return lack
    ? { says: `by messages in the log, which cannot be read: ${lack.says}`, advice: lack.advice }
    : 'by messages in the log';
}
