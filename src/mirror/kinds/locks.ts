/** Lockboxes (LKBX), lock templates and lock sessions. */

import { z } from 'zod';
import {
  count,
  duration,
  instant,
  macAddress,
  name,
  number,
  recordId,
  segments,
  text,
  withTitle,
} from '../fields.ts';
import type { Kind, OwnerId } from '../records.ts';

export const lkbxDevices = (ownerId: OwnerId): Kind => ({
  name: 'LKBX devices',
  table: 'LkbxDevice',
  nullUntilKnown: ['macAddress'],
  list: '/lkbx',
  documented: false,
  record: z
    .object({
      id: recordId,
      bubbleId: name,
      macAddress,
      ownerId,
      locked: z.boolean(),
      hueShift: number,
      lastVisited: instant.nullish(),
      lastLogAt: instant.nullish(),
    })
    .transform((row) => ({ row })),
});

export const lockTemplates = (ownerId: OwnerId): Kind => ({
  name: 'lock templates',
  table: 'LockTemplate',
  nullUntilKnown: ['breakRegularity'],
  list: '/lkbx/templates',
  documented: false,
  record: z
    .object({
      id: recordId,
      ownerId,
      name: text,
      duration: duration,
      isRandomDuration: z.boolean(),
      isBreakEnabled: z.boolean(),
      breakRegularity: count,
      isEmergencyUnlockEnabled: z.boolean(),
      createdAt: instant,
    })
    .transform((row) => ({ row: withTitle('lock template', row) })),
});

export const lockSessions = (ownerId: OwnerId): Kind => ({
  name: 'lock sessions',
  table: 'LockSession',
  nullUntilKnown: ['name', 'createdAt'],
  children: { table: 'LockSegment', parent: 'sessionId' },
  list: '/lkbx/sessions',
  documented: false,
  record: z
    .object({
      id: recordId,
      bubbleId: name,
      publicId: name,
      ownerId,
      name: text.nullish(),
      lockState: name,
      duration: duration,
      startDate: instant,
      endDate: instant.nullish(),
      createdAt: instant.nullish(),
      isActive: z.boolean(),
      LockSegment: segments(
        z.object({ id: recordId, type: name, createdAt: instant, isLocked: z.boolean() }),
      ),
    })
    .transform(({ LockSegment, ...row }) => {
      const isOver = ['completed', 'abandoned'].includes(row.lockState);
      return {
        row: { ...row, isActive: row.isActive && !isOver },
        children: LockSegment.map((segment) => ({ ...segment, sessionId: row.id })),
      };
    }),
});
