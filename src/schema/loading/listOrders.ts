/** The default order of the lists of each model (docs/rest.md#order). */

import { newest, newestId, type Order } from './keyset.ts';
import type { Model } from './visible.ts';

export const listOrders: { readonly [M in Model]: Order } = {
  User: newestId,
  DttDevice: newest('lastVisited', true),
  DttTemplate: newest('createdDate'),
  DttTemplateSegment: newestId,
  DttSession: newest('createdAt'),
  TrainerSegment: newestId,
  LkbxDevice: newest('lastVisited', true),
  LockTemplate: newest('createdAt'),
  LockSession: newest('startDate'),
  LockSegment: newestId,
  OssmDevice: newest('lastVisited', true),
};
