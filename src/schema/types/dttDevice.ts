/** Trainer devices. */

import { builder } from '../builder.ts';
import { addQueries, nullOnlyInMirror, orNull, relatedListField } from '../fields.ts';
import { Device } from './device.ts';
import { DttSession } from './dttSession.ts';

export const DttDevice = builder.prismaNode('DttDevice', {
  description: 'A trainer device (DTT device).',
  interfaces: [Device],
  id: { field: 'id' },
  fields: (t) => ({
    serialNumber: t.exposeString('serialNumber', nullOnlyInMirror('Serial number.')),
    softwareVersion: t.exposeString(
      'softwareVersion',
      nullOnlyInMirror('Version of the software that it runs.'),
    ),
    lastLogAt: t.expose('lastLogAt', {
      type: 'DateTime',
      ...orNull('When it last sent a log, null if it never did.'),
    }),
    createdAt: t.expose('createdDate', { type: 'DateTime', ...nullOnlyInMirror('When it was registered.') }),
    apiHits: t.exposeInt('apiHits', nullOnlyInMirror('How many requests it has made.')),
  }),
});

builder.prismaObjectFields(DttDevice, (t) => ({
  sessions: t.connection(
    ...relatedListField(
      { model: 'DttDevice', relation: 'sessions' },
      'DttSession',
      DttSession,
      "The viewer's sessions on this device, newest first.",
    ),
  ),
}));

addQueries('DttDevice', DttDevice, {
  one: 'A trainer device of the viewer.',
  all: "The viewer's trainer devices, most recently visited first, never visited last.",
});
