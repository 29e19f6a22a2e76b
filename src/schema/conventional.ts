/**
 * Lets fields be written as the documentation of Pothos' plugin for Prisma does, in a schema whose other fields are read by `loading/`.
 * What they read is restricted to the viewer by the client (`src/database/scope`).
 */

import { type GraphQLField, type GraphQLObjectType, type GraphQLSchema, isObjectType } from 'graphql';
import type { Context } from './context.ts';
import { needsIn } from './loading/rows.ts';

/** Completes a schema that Pothos has built. A field that reads what the client cannot restrict fails when it is read. */
export function withConventionalFields(schema: GraphQLSchema): GraphQLSchema {
  for (const type of Object.values(schema.getTypeMap())) {
    if (!isObjectType(type)) continue;
    selectNeeds(type);
    for (const { args, extensions } of Object.values(type.getFields()))
      for (const argument of args) if (argument.name === 'first') argument.defaultValue = extensions.first;
  }
  return schema;
}

/** The relation that a field of the plugin reads. */
const relationOf = ({ extensions }: GraphQLField<unknown, unknown>) =>
  (extensions.pothosPrismaRelationField as { readonly name: string } | undefined)?.name;

/**
 * Tells the plugin which rows of relations the fields of the reader need, so that they may be below a field of the plugin, which
 * reads all columns anyway.
 */
function selectNeeds(type: GraphQLObjectType): void {
  if (type.extensions.pothosPrismaModel === undefined) return;
  const fields = Object.values(type.getFields());
  for (const { name, extensions } of fields) {
    const { rows, forViewer } = needsIn(extensions) ?? {};
    if (!rows && !forViewer) continue;
    if (rows && fields.some((field) => relationOf(field) === rows.relation))
      throw new Error(`${type.name}.${name} and a field of the plugin for Prisma read the same relation`);
    const select = (_args: object, { viewer }: Context, nested: (query: object) => object) => ({
      select: rows ? { [rows.relation]: nested(rows.query) } : forViewer?.(viewer),
    });
    Object.assign(extensions, { pothosPrismaSelect: select });
  }
}
