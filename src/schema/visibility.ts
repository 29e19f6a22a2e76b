/**
 * A plugin for Pothos. It lets fields be written as the documentation of the plugin for Prisma does, in a schema whose other fields are
 * read by `loading/`: a field that the client of a viewer cannot restrict fails when the schema is built, and rows that such a field
 * reads have what the other fields of their type need.
 */

import SchemaBuilder, {
  BasePlugin,
  type PothosOutputFieldConfig,
  type PothosTypeConfig,
  type SchemaTypes,
} from '@pothos/core';
import { type GraphQLObjectType, type GraphQLSchema, isObjectType } from 'graphql';
import type { ModelName } from '../database/models.ts';
import { checkSelection } from '../database/scope/scope.ts';
import type { Context } from './context.ts';
import type { FieldRequirements } from './loading/rows.ts';

const name = 'visibility';
export default name;

declare global {
  namespace PothosSchemaTypes {
    interface Plugins<Types extends SchemaTypes> {
      visibility: VisibilityPlugin<Types>;
    }
  }
}

class VisibilityPlugin<Types extends SchemaTypes> extends BasePlugin<Types> {
  override onTypeConfig(type: PothosTypeConfig): PothosTypeConfig {
    const { pothosPrismaModel: model, pothosPrismaSelect, pothosPrismaInclude } = type.extensions ?? {};
    check(model, pothosPrismaSelect);
    check(model, pothosPrismaInclude);
    return type;
  }

  override onOutputFieldConfig(field: PothosOutputFieldConfig<Types>): PothosOutputFieldConfig<Types> {
    const extensions = field.extensions ?? {};
    const model = this.buildCache.getTypeConfig(field.parentType).extensions?.pothosPrismaModel;
    const relation = relationIn(extensions);
    if (relation) check(model, { [relation.name]: true });
    check(model, extensions.pothosPrismaSelect);
    const { first } = field.args;
    // The connections of the plugin for Prisma would take a default value for one that the client has sent.
    if (first && typeof extensions.first === 'number') first.defaultValue = extensions.first as never;
    return field;
  }

  override afterBuild(schema: GraphQLSchema): GraphQLSchema {
    for (const type of Object.values(schema.getTypeMap())) if (isObjectType(type)) selectNeeds(type);
    return schema;
  }
}

/** The relation that a field of the plugin reads. */
const relationIn = ({ pothosPrismaRelationField: relation }: Readonly<Record<string, unknown>>) =>
  relation as { readonly name: string } | undefined;

function check(model: unknown, selected: unknown): void {
  // Pothos has checked that there is such a model. What a function selects is checked when it is read.
  if (typeof model === 'string' && typeof selected === 'object' && selected !== null)
    checkSelection(model as ModelName, { ...selected });
}

/**
 * Tells the plugin for Prisma which rows of relations the fields of a type need. It reads all columns anyway.
 * @throws for a relation that has a field of the plugin as well, since a row has one list of a relation.
 */
function selectNeeds(type: GraphQLObjectType): void {
  if (!type.extensions.pothosPrismaModel) return;
  const fields = Object.values(type.getFields());
  const conventional = fields.map(({ extensions }) => relationIn(extensions)?.name);
  for (const { name, extensions } of fields) {
    // As in `needsOf`.
    const { rows, forViewer } = (extensions.needs ?? {}) as FieldRequirements;
    if (rows && conventional.includes(rows.relation))
      throw new Error(`${type.name}.${name} and a field of the plugin for Prisma read the same relation`);
    const select = (_args: object, { viewer }: Context, nested: (query: object) => object) => ({
      select: rows ? { [rows.relation]: nested(rows.query) } : forViewer?.(viewer),
    });
    if (rows || forViewer) Object.assign(extensions, { pothosPrismaSelect: select });
  }
}

SchemaBuilder.registerPlugin(name, VisibilityPlugin);
