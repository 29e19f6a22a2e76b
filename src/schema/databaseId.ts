/** The integer ids by which arguments name a record, those of the REST interface. */

import { argumentError } from '../errors.ts';

/** @throws a client error about the argument for a number that is no id. Ids begin at 1. */
export function checkDatabaseId(databaseId: number, argument: string): number {
  if (databaseId >= 1) return databaseId;
  throw argumentError(argument, 'databaseId must be an integer of at least 1');
}
