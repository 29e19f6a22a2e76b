/**
 * The schema as the compiler is given it, in which values take less than calls of functions:
 *
 * - It calls a resolver for each field that has one. A field that is a property of what it belongs to is called like that
 *   property here, and has no resolver, so that compiled code reads it off.
 * - It serializes every value. It is told not to, but for the types that are made here to stand for those whose values
 *   may be no such values, or are written otherwise: those are serialized as ever.
 *
 * Resolvers, and the introspection, never see these types.
 */

import {
  type GraphQLField,
  type GraphQLLeafType,
  GraphQLList,
  type GraphQLNamedOutputType,
  type GraphQLNamedType,
  GraphQLNonNull,
  type GraphQLObjectType,
  type GraphQLOutputType,
  GraphQLScalarType,
  type GraphQLSchema,
  getNamedType,
  isIntrospectionType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
} from 'graphql';
import type { CompilerOptions } from 'graphql-jit';

export interface CompilerSchema {
  readonly schema: GraphQLSchema;
  /** Has resolvers told of the types that the schema itself has. */
  readonly options: Pick<CompilerOptions, 'resolverInfoEnricher' | 'disableLeafSerialization'>;
}

/** The extension of a field whose resolver gives a property of what it belongs to, and does nothing else. */
export const readsProperty = (name: string) => ({ property: name });

export interface CompilerSchemaOptions {
  /** Finds types that only the compiler knows. */
  findType(name: string): GraphQLNamedType | undefined;
  /** Whether a property is always null, or a value of the type with this name as a response has it. */
  isExact(parent: GraphQLObjectType, property: string, type: string): boolean;
}

export function compilerSchema(
  schema: GraphQLSchema,
  { findType, isExact }: CompilerSchemaOptions,
): CompilerSchema {
  const made = new Map<GraphQLNamedType, GraphQLNamedType>();
  const given = new Map<GraphQLOutputType, GraphQLOutputType>();

  /** @param exact whether its values are. */
  function ofNamed(type: GraphQLNamedOutputType, exact: boolean): GraphQLNamedOutputType {
    if (isObjectType(type)) return ofObject(type);
    return isLeafType(type) && !exact ? ofLeaf(type) : type;
  }

  function ofLeaf(type: GraphQLLeafType): GraphQLLeafType {
    const known = made.get(type);
    if (known) return known as GraphQLLeafType;
    const { name } = type;
    const serialize = (value: unknown) => type.serialize(value);
    const compiled = new GraphQLScalarType({ name: `Serialized${name}`, serialize });
    made.set(type, compiled);
    given.set(compiled, type);
    return compiled;
  }

  function ofObject(type: GraphQLObjectType): GraphQLObjectType {
    // Meta fields lead to these, whatever schema they are asked of.
    if (isIntrospectionType(type)) return type;
    const known = made.get(type);
    if (known) return known as GraphQLObjectType;
    let fields: ReturnType<GraphQLObjectType['getFields']> | undefined;
    const getFields = () => {
      fields ??= Object.fromEntries(
        Object.entries(type.getFields()).map(([name, field]) => [name, ofField(type, field)]),
      );
      return fields;
    };
    const compiled: GraphQLObjectType = Object.create(type, { getFields: { value: getFields } });
    made.set(type, compiled);
    given.set(compiled, type);
    return compiled;
  }

  function ofField(
    parent: GraphQLObjectType,
    field: GraphQLField<unknown, unknown>,
  ): GraphQLField<unknown, unknown> {
    const property = propertyOf(field);
    if (property === undefined) return { ...field, type: ofType(field.type, false) };
    const { resolve: _, ...unresolved } = field;
    const exact = isExact(parent, property, getNamedType(field.type).name);
    return { ...unresolved, type: ofType(field.type, exact), name: property };
  }

  function ofType(type: GraphQLOutputType, exact: boolean): GraphQLOutputType {
    const compiled = isNonNullType(type)
      ? new GraphQLNonNull(ofType(type.ofType, exact))
      : isListType(type)
        ? new GraphQLList(ofType(type.ofType, exact))
        : ofNamed(type, exact);
    given.set(compiled, type);
    return compiled;
  }

  const original = <Type extends GraphQLOutputType>(type: Type) => (given.get(type) ?? type) as Type;
  const query = schema.getQueryType();
  return {
    schema: Object.create(schema, {
      getType: {
        value: (name: string) => {
          const type = findType(name) ?? schema.getType(name);
          return isObjectType(type) ? ofObject(type) : type;
        },
      },
      getQueryType: { value: () => query && ofObject(query) },
      getRootType: {
        value: (operation: Parameters<GraphQLSchema['getRootType']>[0]) => {
          const type = schema.getRootType(operation);
          return type && ofObject(type);
        },
      },
      getPossibleTypes: {
        value: (type: Parameters<GraphQLSchema['getPossibleTypes']>[0]) =>
          schema.getPossibleTypes(type).map(ofObject),
      },
    }),
    options: {
      disableLeafSerialization: true,
      resolverInfoEnricher: ({ parentType, returnType }) => ({
        schema,
        parentType: original(parentType),
        returnType: original(returnType),
      }),
    },
  };
}

/** The property that a field is, undefined for one that is more than that. */
function propertyOf({ extensions, args }: GraphQLField<unknown, unknown>): string | undefined {
  const name = extensions.property ?? extensions.pothosExposedField;
  return typeof name === 'string' && args.length === 0 ? name : undefined;
}
