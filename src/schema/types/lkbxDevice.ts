/** Lock devices (LKBX). */

import { builder } from '../builder.ts';
import { recordField, viewerListField } from '../fields.ts';
import { Device } from './device.ts';

export const LkbxDevice = builder.prismaNode('LkbxDevice', {
  description: 'A lock device (LKBX).',
  interfaces: [Device],
  id: { field: 'id' },
  fields: (t) => ({
    locked: t.exposeBoolean('locked', { description: 'Whether it is locked.' }),
    hueShift: t.exposeFloat('hueShift', { description: 'Shift of its light’s hue; the unit is not known.' }),
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

/** The field of `Query` and `User`. */
export const lkbxDevices = viewerListField(
  'LkbxDevice',
  LkbxDevice,
  "The viewer's lock devices, most recently visited first, never visited last.",
);

builder.queryFields((t) => ({
  lkbxDevice: t.field(recordField('LkbxDevice', LkbxDevice, 'A lock device of the viewer.')),
  lkbxDevices: t.connection(lkbxDevices, LkbxDeviceConnection),
}));
