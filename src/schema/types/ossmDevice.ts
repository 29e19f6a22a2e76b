/** OSSM devices. */

import { listedRecord } from '../fields.ts';
import { Device } from './device.ts';

listedRecord('OssmDevice', {
  description: 'A device of the OSSM kind.',
  one: 'One of your OSSM devices.',
  all: 'Your OSSM devices, most recently visited first, never visited last.',
  interfaces: [Device],
  columns: {
    chip: 'Kind of its processor.',
    pairingCode: 'Code for pairing, while it has one.',
    pairingExpiresAt: { column: 'pairingExpires', description: 'Until when the pairing code is valid.' },
    firmwareId: { column: 'OSSMFirmwareId', description: 'Integer id of its firmware.' },
  },
});
