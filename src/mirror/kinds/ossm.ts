/** OSSM devices. */

import { z } from 'zod';
import { instant, int, macAddress, name, recordId, text } from '../fields.ts';
import type { Kind, OwnerId } from '../records.ts';

export const ossmDevices = (ownerId: OwnerId): Kind => ({
  name: 'OSSM devices',
  table: 'OssmDevice',
  nullUntilKnown: ['macAddress'],
  list: '/ossm',
  documented: false,
  record: z
    .object({
      id: recordId,
      bubbleId: name,
      macAddress,
      chip: name,
      ownerId,
      pairingCode: text.nullish(),
      pairingExpires: instant.nullish(),
      lastVisited: instant.nullish(),
      OSSMFirmwareId: int.nullish(),
    })
    .transform((row) => ({ row })),
});
