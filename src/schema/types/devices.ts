/** The fields for devices of all kinds. They are not in `device.ts`, since each kind imports the interface `Device` from there. */

import { builder } from '../builder.ts';
import { addViewerList } from '../fields.ts';
import { deviceList } from '../loading/devices.ts';
import { Device } from './device.ts';
import { ownerField } from './user.ts';

builder.interfaceField(Device, 'owner', (t) => t.field(ownerField));

addViewerList(
  'devices',
  'Device',
  Device,
  "The viewer's devices of every kind, most recently visited first, never visited last.",
  deviceList,
);
