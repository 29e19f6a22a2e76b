/** Lock devices (LKBX). */

import { builder } from '../builder.ts';
import { addQueries, orNull } from '../fields.ts';
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
      ...orNull('When it last sent a log, null if it never did.'),
    }),
  }),
});

addQueries('LkbxDevice', LkbxDevice, {
  one: 'A lock device of the viewer.',
  all: "The viewer's lock devices, most recently visited first, never visited last.",
});
