/** Lock devices (LKBX). */

import { listedRecord } from '../fields.ts';
import { Device } from './device.ts';

listedRecord('LkbxDevice', {
  description: 'A lock device (LKBX).',
  one: 'A lock device of the viewer.',
  all: "The viewer's lock devices, most recently visited first, never visited last.",
  interfaces: [Device],
  columns: {
    locked: 'Whether it is locked.',
    hueShift: 'Shift of its light’s hue; the unit is not known.',
    lastLogAt: 'When it last sent a log, null if it never did.',
  },
});
