/**
 * The two ids of a record: the global one, by which Relay and other clients identify records of any type, and that of the REST
 * interface.
 */

import { readId } from '../database/ids.ts';
import { isRecordType, type RecordType } from '../database/models.ts';
import { argumentError } from '../errors.ts';

export interface GlobalId {
  readonly typename: RecordType;
  readonly id: number;
}

export const writeGlobalId = (typename: string, id: string | number | bigint): string =>
  Buffer.from(`${typename}:${id}`).toString('base64url');

/** @throws a client error about the argument for a text that `writeGlobalId` cannot have written. */
export function readGlobalId(text: string, argument: string): GlobalId {
  const [, typename = '', digits = ''] =
    /^(\w+):(\d+)$/.exec(Buffer.from(text, 'base64url').toString()) ?? [];
  const id = readId(digits);
  if (id === undefined || !isRecordType(typename)) {
    const quoted = JSON.stringify(text.slice(0, 64));
    throw argumentError(argument, `${quoted} is not a global id of this schema`);
  }
  return { typename, id };
}

/** @throws a client error about the argument for a number that is no id of the REST interface. Ids begin at 1. */
export function checkDatabaseId(databaseId: number, argument: string): number {
  if (databaseId >= 1) return databaseId;
  throw argumentError(argument, 'databaseId must be an integer of at least 1');
}
