/** Reads what a federation gateway says of a record: what it is, and one of its keys. */

import { largestId } from '../../database/ids.ts';
import { argumentError } from '../../errors.ts';
import { type GlobalId, readGlobalId } from '../globalId.ts';
import { isModel } from '../loading/visible.ts';

/** By which argument errors know them. */
const argument = 'representations';

/**
 * The record that it stands for. Undefined for an integer that no record can have.
 * @throws a client error for what stands for no record of this schema.
 */
export function readRepresentation(given: unknown): GlobalId | undefined {
  const { __typename: typename, id, databaseId }: Record<string, unknown> = isRecord(given) ? given : {};
  if (typeof typename !== 'string' || !isModel(typename))
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

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null;
