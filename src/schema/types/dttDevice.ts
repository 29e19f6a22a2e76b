/** Trainer devices. */

import { listArguments, recordArguments } from '../arguments.ts';
import { builder } from '../builder.ts';
import { byDatabaseId, list, listUnder } from '../loading/reads.ts';
import { Device } from './device.ts';
import { DttSession, DttSessionConnection } from './dttSession.ts';

export const DttDevice = builder.prismaNode('DttDevice', {
  description: 'A trainer device (DTT device).',
  interfaces: [Device],
  id: { field: 'id' },
  fields: (t) => ({
    serialNumber: t.exposeString('serialNumber', { nullable: true, description: 'Serial number.' }),
    softwareVersion: t.exposeString('softwareVersion', {
      nullable: true,
      description: 'Version of the software that it runs.',
    }),
    lastLogAt: t.expose('lastLogAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When it last sent a log, null if it never did.',
    }),
    createdDate: t.expose('createdDate', { type: 'DateTime', description: 'When it was registered.' }),
    apiHits: t.exposeInt('apiHits', { description: 'How many requests it has made.' }),
  }),
});

export const DttDeviceConnection = builder.connectionObject({ type: DttDevice, name: 'DttDeviceConnection' });

builder.prismaObjectFields(DttDevice, (t) => ({
  sessions: t.connection(
    {
      type: DttSession,
      args: listArguments,
      description: "The viewer's sessions on this device, newest first.",
      ...listUnder('DttDevice', 'sessions', 'DttSession'),
    },
    DttSessionConnection,
  ),
}));

builder.queryFields((t) => ({
  dttDevice: t.field({
    type: DttDevice,
    nullable: true,
    args: recordArguments,
    description: 'A trainer device of the viewer.',
    resolve: byDatabaseId('DttDevice'),
  }),
  dttDevices: t.connection(
    {
      type: DttDevice,
      args: listArguments,
      description: "The viewer's trainer devices, most recently visited first, never visited last.",
      ...list('DttDevice'),
    },
    DttDeviceConnection,
  ),
}));
