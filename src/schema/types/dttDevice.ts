/** Trainer devices. */

import { listBelow, listedRecord, nullIfUnknown } from '../fields.ts';
import { Device } from './device.ts';

listedRecord('DttDevice', {
  description: 'A trainer device (DTT device).',
  one: 'One of your trainer devices.',
  all: 'Your trainer devices, most recently visited first, never visited last.',
  interfaces: [Device],
  columns: {
    serialNumber: nullIfUnknown('Serial number.'),
    softwareVersion: nullIfUnknown('Version of the software that it runs.'),
    lastLogAt: 'When it last sent a log, null if it never did.',
    createdAt: { column: 'createdDate', ...nullIfUnknown('When it was registered.') },
    apiHits: nullIfUnknown('How many requests it has made.'),
  },
  fields: (t) => ({
    sessions: t.connection(
      ...listBelow('DttDevice', 'sessions', 'DttSession', 'Your sessions on this device, newest first.'),
    ),
  }),
});
