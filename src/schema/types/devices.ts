/** The fields for devices of all kinds. They are not in `device.ts`, since each kind imports the interface `Device` from there. */

import { builder } from '../builder.ts';
import { listField } from '../fields.ts';
import { deviceList } from '../loading/devices.ts';
import { toOne } from '../loading/reads.ts';
import { Device } from './device.ts';
import { User } from './user.ts';

builder.interfaceField(Device, 'owner', (t) =>
  t.field({
    type: User,
    nullable: true,
    description: 'The user whom it belongs to.',
    ...toOne('User', 'ownerId'),
  }),
);

const DeviceConnection = builder.connectionObject({ type: Device, name: 'DeviceConnection' });

const devices = listField(
  'Device',
  Device,
  "The viewer's devices of every kind, most recently visited first, never visited last.",
  deviceList,
);

builder.queryField('devices', (t) => t.connection(devices, DeviceConnection));
builder.prismaObjectField(User, 'devices', (t) => t.connection(devices, DeviceConnection));
