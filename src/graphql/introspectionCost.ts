/** Counts how many fields the response to an introspection query has. The count is exact, since the schema is known. */

import {
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLField,
  type GraphQLResolveInfo,
  type GraphQLSchema,
  getArgumentValues,
  getNamedType,
  isObjectType,
  Kind,
  SchemaMetaFieldDef,
  type SelectionSetNode,
  TypeMetaFieldDef,
} from 'graphql';
import type { Values } from '../schema/compiledDocument.ts';

/** The introspection field of that name, `__schema` or `__type`; undefined for any other name. */
export function introspectionField(name: string): GraphQLField<unknown, unknown> | undefined {
  return [SchemaMetaFieldDef, TypeMetaFieldDef].find((field) => field.name === name);
}

/**
 * Returns a function that counts how many fields the response to `__schema` or `__type` has, if `@skip` and `@include` leave none
 * out. The count of each selection on each type is computed once, however often the response has it, so that the time does not
 * grow with the response. The document must be valid.
 * @param variables the coerced values.
 */
export function createIntrospectionCount(
  schema: GraphQLSchema,
  fragments: ReadonlyMap<string, FragmentDefinitionNode>,
  variables: Values,
): (root: FieldNode) => number {
  const known = new Map<SelectionSetNode, Map<unknown, number>>();
  // The resolvers of the introspection read nothing but the schema.
  const info = { schema } as GraphQLResolveInfo;

  function countField(field: GraphQLField<unknown, unknown>, node: FieldNode, source: unknown): number {
    const type = getNamedType(field.type);
    if (!node.selectionSet || !isObjectType(type)) return 1;
    const given = argumentsOf(field, node);
    const value = given && field.resolve?.(source, given, undefined, info);
    let count = 1;
    for (const item of Array.isArray(value) ? value : [value])
      if (item != null) count += countIn(node.selectionSet, type.getFields(), item);
    return count;
  }

  /** Undefined where they are wrong: the execution rejects them. */
  function argumentsOf(field: GraphQLField<unknown, unknown>, node: FieldNode) {
    try {
      return getArgumentValues(field, node, variables);
    } catch {
      return undefined;
    }
  }

  function countIn(set: SelectionSetNode, fields: Fields, source: unknown): number {
    const counts = known.get(set) ?? new Map<unknown, number>();
    known.set(set, counts);
    const found = counts.get(source);
    if (found !== undefined) return found;
    let count = 0;
    for (const selection of set.selections) {
      if (selection.kind === Kind.FIELD) {
        const field = fields[selection.name.value];
        count += field ? countField(field, selection, source) : 1;
      } else {
        const below =
          selection.kind === Kind.INLINE_FRAGMENT ? selection : fragments.get(selection.name.value);
        if (below) count += countIn(below.selectionSet, fields, source);
      }
    }
    counts.set(source, count);
    return count;
  }

  return (root) => {
    const field = introspectionField(root.name.value);
    return field ? countField(field, root, undefined) : 1;
  };
}

type Fields = Readonly<Record<string, GraphQLField<unknown, unknown>>>;
