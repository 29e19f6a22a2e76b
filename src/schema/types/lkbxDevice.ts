/** Lockboxes, the service devices. */

import { listArguments, recordArguments } from '../arguments.ts';
import { builder } from '../builder.ts';
import { byDatabaseId, list } from '../loading/reads.ts';
import { Device } from './device.ts';

export const LkbxDevice = builder.prismaNode('LkbxDevice', {
  description: 'A lock device (LKBX).',
  interfaces: [Device],
  id: { field: 'id' },
  fields: (t) => ({
    locked: t.exposeBoolean('locked', { description: 'Whether it is locked.' }),
    hueShift: t.exposeFloat('hueShift', { description: 'Shift of its light’s hue.' }),
    lastLogAt: t.expose('lastLogAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When it last sent a log, null if it never did.',
    }),
  }),
});

export const LkbxDeviceConnection = builder.connectionObject({
  type: LkbxDevice,
  name: 'LkbxDeviceConnection',
});

builder.queryFields((t) => ({
  lkbxDevice: t.field({
    type: LkbxDevice,
    nullable: true,
    args: recordArguments,
    description: 'A lock device of the viewer.',
    resolve: byDatabaseId('LkbxDevice'),
  }),
  lkbxDevices: t.connection(
    {
      type: LkbxDevice,
      args: listArguments,
      description: "The viewer's lock devices, most recently visited first, never visited last.",
      ...list('LkbxDevice'),
    },
    LkbxDeviceConnection,
  ),
}));
