/** The fields about devices of every kind: beside the kinds, which need the interface `Device` before they are made. */

import type { GraphQLResolveInfo } from 'graphql';
import { builder } from '../builder.ts';
import type { Context } from '../context.ts';
import { pageSize } from '../loading/pagination.ts';
import { onEachChange, readNewest, toOne } from '../loading/reads.ts';
import { Device } from './device.ts';
import { DttDevice } from './dttDevice.ts';
import { LkbxDevice } from './lkbxDevice.ts';
import { OssmDevice } from './ossmDevice.ts';
import { User } from './user.ts';

builder.interfaceField(Device, 'owner', (t) =>
  t.field({
    type: User,
    nullable: true,
    description: 'The user whom it belongs to.',
    ...toOne('User', 'ownerId'),
  }),
);

const devices = {
  // What the field counts for in the complexity of an operation: as many as most accounts ever have.
  extensions: { listSize: pageSize.default },
  description: `The viewer's devices of every kind, most recently visited first, never visited last. At most ${pageSize.highest} of each kind.`,
  resolve: async (_root: unknown, _args: unknown, context: Context, info: GraphQLResolveInfo) => {
    const [dtt, lkbx, ossm] = await Promise.all([
      readNewest('DttDevice', pageSize.highest, context, info).then((rows) => DttDevice.addBrand(rows)),
      readNewest('LkbxDevice', pageSize.highest, context, info).then((rows) => LkbxDevice.addBrand(rows)),
      readNewest('OssmDevice', pageSize.highest, context, info).then((rows) => OssmDevice.addBrand(rows)),
    ]);
    // A time that never comes is a number, as `statement.ts` has it.
    const visit = ({ lastVisited }: { lastVisited: Date | null }) =>
      lastVisited === null ? Number.NEGATIVE_INFINITY : Number(lastVisited);
    // The sort is stable, so those that were never visited keep the order of their own lists.
    return [...dtt, ...lkbx, ...ossm].sort((a, b) => (visit(a) === visit(b) ? 0 : visit(b) - visit(a)));
  },
};

builder.queryField('devices', (t) => t.field({ ...devices, type: [Device] }));
builder.subscriptionField('devices', (t) =>
  t.field({
    ...devices,
    type: [Device],
    ...onEachChange(devices.resolve),
  }),
);
