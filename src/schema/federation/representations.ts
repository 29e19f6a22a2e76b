/** Reads the representations that a federation gateway sends: the type of a record, and one or both of its keys. */

import { largestId } from '../../database/ids.ts';
import { isRecordType } from '../../database/models.ts';
import { argumentError } from '../../errors.ts';
import { type GlobalId, readGlobalId } from '../globalId.ts';

/** The argument that errors name. */
const argument = 'representations';

/**
 * Reads a representation as the global id of its record, undefined if no record can have its integer id.
 * @throws a client error for a value that represents no record of this schema.
 */
export function readRepresentation(given: unknown): GlobalId | undefined {
  const { __typename: typename, id, databaseId }: Record<string, unknown> = isObject(given) ? given : {};
  if (typeof typename !== 'string' || !isRecordType(typename))
    throw argumentError(
      argument,
      `A representation must have a __typename that is an entity of this subgraph`,
    );
  if (id == null && databaseId == null)
    throw argumentError(argument, `A representation of ${typename} must have an id or a databaseId`);
  if (databaseId != null && !Number.isInteger(databaseId))
    throw argumentError(argument, `The databaseId of a representation of ${typename} must be an integer`);
  if (id == null) return byDatabaseId(typename, Number(databaseId));
  const named = typeof id === 'string' ? readGlobalId(id, argument) : undefined;
  if (named?.typename !== typename)
    throw argumentError(argument, `The id of a representation of ${typename} must be a global id of one`);
  if (databaseId != null && databaseId !== named.id)
    throw argumentError(argument, `The id and the databaseId of a ${typename} must be those of the same one`);
  return named;
}

const byDatabaseId = (typename: GlobalId['typename'], id: number) =>
  id >= 1 && id <= largestId ? { typename, id } : undefined;

/** Whether properties can be read from a value. A list has none of the properties above, so it fails like an object without them. */
const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null;
