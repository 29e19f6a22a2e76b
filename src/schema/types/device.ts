/** The interface of the three kinds of devices. */

import { builder } from '../builder.ts';
import { addViewerList, nullOnlyInMirror, orNull } from '../fields.ts';
import { deviceList } from '../loading/devices.ts';
import { ownerField } from './user.ts';

interface DeviceRow {
  id: number;
  bubbleId: string;
  macAddress: string | null;
  ownerId: number;
  lastVisited: Date | null;
}

export const Device = builder.interfaceRef<DeviceRow>('Device').implement({
  description: 'A device of the viewer, whatever its kind.',
  interfaces: [builder.nodeInterfaceRef()],
  fields: (t) => ({
    databaseId: t.exposeInt('id', { description: 'The integer id of the REST interface.' }),
    bubbleId: t.exposeString('bubbleId', { description: 'Public identifier.' }),
    macAddress: t.exposeString(
      'macAddress',
      nullOnlyInMirror('Hardware address, such as `02:00:00:00:00:01`.'),
    ),
    ownerId: t.exposeInt('ownerId', { description: 'Integer id of the user whom it belongs to.' }),
    lastVisitedAt: t.expose('lastVisited', {
      type: 'DateTime',
      ...orNull('When it last called in, null if it never did.'),
    }),
    owner: t.field(ownerField),
  }),
});

addViewerList(
  'devices',
  'Device',
  Device,
  "The viewer's devices of every kind, most recently visited first, never visited last.",
  deviceList,
);
