/** OSSM devices. */

import { builder } from '../builder.ts';
import { recordField, viewerListField } from '../fields.ts';
import { Device } from './device.ts';

export const OssmDevice = builder.prismaNode('OssmDevice', {
  description: 'A device of the OSSM kind.',
  interfaces: [Device],
  id: { field: 'id' },
  fields: (t) => ({
    chip: t.exposeString('chip', { description: 'Kind of its processor.' }),
    pairingCode: t.exposeString('pairingCode', {
      nullable: true,
      description: 'Code for pairing, while it has one.',
    }),
    pairingExpiresAt: t.expose('pairingExpires', {
      type: 'DateTime',
      nullable: true,
      description: 'Until when the pairing code is valid.',
    }),
    firmwareId: t.exposeInt('OSSMFirmwareId', { nullable: true, description: 'Integer id of its firmware.' }),
  }),
});

export const OssmDeviceConnection = builder.connectionObject({
  type: OssmDevice,
  name: 'OssmDeviceConnection',
});

/** The field of `Query` and `User`. */
export const ossmDevices = viewerListField(
  'OssmDevice',
  OssmDevice,
  "The viewer's OSSM devices, most recently visited first, never visited last.",
);

builder.queryFields((t) => ({
  ossmDevice: t.field(recordField('OssmDevice', OssmDevice, 'An OSSM device of the viewer.')),
  ossmDevices: t.connection(ossmDevices, OssmDeviceConnection),
}));
