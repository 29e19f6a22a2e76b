/** All kinds of records that an account has upstream. */

import { z } from 'zod';
import { numeric } from '../fields.ts';
import { dttDevices, dttSessions, dttTemplates } from './dtt.ts';
import { lkbxDevices, lockSessions, lockTemplates } from './locks.ts';
import { ossmDevices } from './ossm.ts';

/** Every kind of record. @param accountId the user to whom all but imported templates must belong. */
export function kindsOf(accountId: number) {
  const ownerId = numeric(z.literal(accountId, { error: `is not the account's, which is ${accountId}` }));
  return {
    dttDevices: dttDevices(ownerId),
    dttTemplates: dttTemplates(accountId),
    lkbxDevices: lkbxDevices(ownerId),
    lockTemplates: lockTemplates(ownerId),
    lockSessions: lockSessions(ownerId),
    ossmDevices: ossmDevices(ownerId),
    dttSessions: dttSessions(accountId),
  };
}
