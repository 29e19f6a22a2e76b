/** Trainer devices. */

import { listBelow, listedRecord, nullOnlyInMirror } from '../fields.ts';
import { Device } from './device.ts';

listedRecord('DttDevice', {
  description: 'A trainer device (DTT device).',
  one: 'A trainer device of the viewer.',
  all: "The viewer's trainer devices, most recently visited first, never visited last.",
  interfaces: [Device],
  columns: {
    serialNumber: nullOnlyInMirror('Serial number.'),
    softwareVersion: nullOnlyInMirror('Version of the software that it runs.'),
    lastLogAt: 'When it last sent a log, null if it never did.',
    createdAt: { column: 'createdDate', ...nullOnlyInMirror('When it was registered.') },
    apiHits: nullOnlyInMirror('How many requests it has made.'),
  },
  fields: (t) => ({
    sessions: t.connection(
      ...listBelow(
        'DttDevice',
        'sessions',
        'DttSession',
        "The viewer's sessions on this device, newest first.",
      ),
    ),
  }),
});
