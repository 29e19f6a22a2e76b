/** Arguments that name a record by one of its two ids. */

import { argumentError } from '../errors.ts';
import { builder } from './builder.ts';
import { checkDatabaseId, type NodeType, readGlobalId } from './globalId.ts';

/**
 * The input type for an argument that names a record.
 * @param noun with its article.
 */
export const referenceTo = (type: NodeType, noun: string) =>
  builder.inputType(`${type}Reference`, {
    description: `Names ${noun}, by one of its two ids.`,
    isOneOf: true,
    fields: (t) => ({
      databaseId: t.int({ description: 'Its `databaseId`. At least 1.' }),
      id: t.id({ description: 'Its global id, as the field `id` gives it.' }),
    }),
  });

/**
 * The integer id of the record that a client names.
 * @throws a client error about the argument.
 */
export function idOf(
  type: NodeType,
  { databaseId, id }: ReturnType<typeof referenceTo>['$inferInput'],
  argument: string,
): number {
  if (id == null) return checkDatabaseId(databaseId, argument);
  const named = readGlobalId(id, argument);
  if (named.typename === type) return named.id;
  throw argumentError(
    argument,
    `${JSON.stringify(id)} is the global id of ${withArticle(named.typename)}, not of ${withArticle(type)}`,
  );
}

const withArticle = (noun: string) => `${/^[AO]/.test(noun) ? 'an' : 'a'} ${noun}`;
