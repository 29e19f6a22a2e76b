/**
 * The two ids of a record: the global one, by which Relay and other clients identify records of any type, and that of the REST
 * interface.
 */

import { readId } from '../database/ids.ts';
import { isRecordType, type RecordType } from '../database/models.ts';
import { argumentError } from '../errors.ts';

/** The types whose objects have global ids. */
export type NodeType = RecordType | 'ApiToken';

export interface GlobalId {
  readonly typename: NodeType;
  readonly id: number;
}

export const writeGlobalId = (typename: string, id: string | number | bigint): string =>
  Buffer.from(`${typename}:${id}`).toString('base64url');

/** @throws a client error about the argument for a text that `writeGlobalId` cannot have written. */
export function readGlobalId(text: string, argument: string): GlobalId {
  const [, typename = '', digits = ''] =
    /^(\w+):(\d+)$/.exec(Buffer.from(text, 'base64url').toString()) ?? [];
  const id = readId(digits);
  // Decoding leaves out characters that base64url does not have.
  const isNode = typename === 'ApiToken' || isRecordType(typename);
  if (id !== undefined && isNode && writeGlobalId(typename, id) === text) return { typename, id };
  throw argumentError(argument, `${JSON.stringify(text.slice(0, 64))} is not a global id of this schema`);
}

/** @throws a client error about the argument for a number that is no id of the REST interface. Ids begin at 1. */
export function checkDatabaseId(databaseId: number, argument: string): number {
  if (databaseId >= 1) return databaseId;
  throw argumentError(argument, 'databaseId must be an integer of at least 1');
}
