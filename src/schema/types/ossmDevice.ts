/** OSSM devices. */

import { builder } from '../builder.ts';
import { addQueries, orNull } from '../fields.ts';
import { Device } from './device.ts';

export const OssmDevice = builder.prismaNode('OssmDevice', {
  description: 'A device of the OSSM kind.',
  interfaces: [Device],
  id: { field: 'id' },
  fields: (t) => ({
    chip: t.exposeString('chip', { description: 'Kind of its processor.' }),
    pairingCode: t.exposeString('pairingCode', orNull('Code for pairing, while it has one.')),
    pairingExpiresAt: t.expose('pairingExpires', {
      type: 'DateTime',
      ...orNull('Until when the pairing code is valid.'),
    }),
    firmwareId: t.exposeInt('OSSMFirmwareId', orNull('Integer id of its firmware.')),
  }),
});

addQueries('OssmDevice', OssmDevice, {
  one: 'An OSSM device of the viewer.',
  all: "The viewer's OSSM devices, most recently visited first, never visited last.",
});
