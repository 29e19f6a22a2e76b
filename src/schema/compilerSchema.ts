/**
 * The schema as the compiler is given it. It calls a resolver for each field that has one, which takes longer than all
 * else that a value takes: so a field that is a property of what it belongs to is called like that property here, and
 * has no resolver. Compiled code then reads it off. Resolvers, and the introspection, never see these types.
 */

import {
  type GraphQLField,
  GraphQLList,
  type GraphQLNamedType,
  GraphQLNonNull,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
  isIntrospectionType,
  isListType,
  isNonNullType,
  isObjectType,
} from 'graphql';
import type { CompilerOptions } from 'graphql-jit';

export interface CompilerSchema {
  readonly schema: GraphQLSchema;
  /** Has resolvers told of the types that the schema itself has. */
  readonly options: Pick<CompilerOptions, 'resolverInfoEnricher'>;
}

/** The extension of a field whose resolver gives a property of what it belongs to, and does nothing else. */
export const readsProperty = (name: string) => ({ property: name });

/** @param findType finds types that only the compiler knows. */
export function compilerSchema(
  schema: GraphQLSchema,
  findType: (name: string) => GraphQLNamedType | undefined,
): CompilerSchema {
  const made = new Map<GraphQLObjectType, GraphQLObjectType>();
  const given = new Map<GraphQLOutputType, GraphQLOutputType>();

  function ofNamed<Type extends GraphQLNamedType>(type: Type): Type;
  function ofNamed(type: GraphQLNamedType): GraphQLNamedType {
    return isObjectType(type) ? ofObject(type) : type;
  }

  function ofObject(type: GraphQLObjectType): GraphQLObjectType {
    // Meta fields lead to these, whatever schema they are asked of.
    if (isIntrospectionType(type)) return type;
    const known = made.get(type);
    if (known) return known;
    let fields: ReturnType<GraphQLObjectType['getFields']> | undefined;
    const getFields = () => {
      fields ??= Object.fromEntries(
        Object.entries(type.getFields()).map(([name, field]) => [name, ofField(field)]),
      );
      return fields;
    };
    const compiled: GraphQLObjectType = Object.create(type, { getFields: { value: getFields } });
    made.set(type, compiled);
    given.set(compiled, type);
    return compiled;
  }

  function ofField(field: GraphQLField<unknown, unknown>): GraphQLField<unknown, unknown> {
    const property = propertyOf(field);
    const { resolve: _, ...unresolved } = field;
    const type = ofType(field.type);
    return property === undefined ? { ...field, type } : { ...unresolved, type, name: property };
  }

  function ofType(type: GraphQLOutputType): GraphQLOutputType {
    const compiled = isNonNullType(type)
      ? new GraphQLNonNull(ofType(type.ofType))
      : isListType(type)
        ? new GraphQLList(ofType(type.ofType))
        : ofNamed(type);
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
          return type && ofNamed(type);
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
