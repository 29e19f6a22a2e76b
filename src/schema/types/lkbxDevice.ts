/** Lock devices (LKBX). */

import { listedRecord } from '../fields.ts';
import { Device } from './device.ts';

listedRecord('LkbxDevice', {
  description: 'A lock device (LKBX).',
  one: 'One of your lock devices.',
  all: 'Your lock devices, most recently visited first, never visited last.',
  interfaces: [Device],
  columns: {
    locked: 'Whether it is locked.',
    hueShift: 'Shift of the hue of its light; the unit is not known.',
    lastLogAt: 'When it last sent a log, null if it never did.',
  },
});
