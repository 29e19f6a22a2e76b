/**
 * A variant of the schema for the compiler, so that compiled code calls fewer functions:
 *
 * - Compiled code calls the resolver of each field that has one. Here, a field that only reads a property of its parent has the
 *   name of that property and no resolver, so that compiled code reads the property directly.
 * - Compiled code serializes every value, unless that is disabled. It is disabled for scalars and enumerations. Values that have to be
 *   converted or may be invalid (times and numbers may be infinite) have types of their own here, which are serialized.
 *
 * Resolvers and introspection never see these types.
 */

import {
  defaultFieldResolver,
  type GraphQLField,
  type GraphQLLeafType,
  GraphQLList,
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
  /** Options that pass the original types to resolvers. */
  readonly options: Pick<CompilerOptions, 'resolverInfoEnricher' | 'disableLeafSerialization'>;
}

/** The extension of a field whose resolver only returns a property of its parent. */
export const readsProperty = (name: string) => ({ property: name });

/**
 * The extension of a field whose property is a getter that may throw. Compiled code only catches errors of resolvers, so
 * such a field must keep its resolver.
 */
export const makesProperty = { isMade: true };

export interface CompilerSchemaOptions {
  /** Finds types that only compiled documents use. */
  findType(name: string): GraphQLNamedType | undefined;
  /** Whether a property always is null or a value of this type that needs no serialization. */
  isExact(parent: GraphQLObjectType, property: string, type: string): boolean;
}

export function compilerSchema(schema: GraphQLSchema, options: CompilerSchemaOptions): CompilerSchema {
  const types = new CompilerTypes(options.isExact);
  const query = schema.getQueryType();
  const getType = (name: string) => {
    const type = options.findType(name) ?? schema.getType(name);
    return isObjectType(type) ? types.ofObject(type) : type;
  };
  const getRootType: GraphQLSchema['getRootType'] = (operation) => {
    const type = schema.getRootType(operation);
    return type && types.ofObject(type);
  };
  const getPossibleTypes: GraphQLSchema['getPossibleTypes'] = (type) =>
    schema.getPossibleTypes(type).map((each) => types.ofObject(each));
  return {
    schema: Object.create(schema, {
      getType: { value: getType },
      getQueryType: { value: () => query && types.ofObject(query) },
      getRootType: { value: getRootType },
      getPossibleTypes: { value: getPossibleTypes },
    }),
    options: {
      disableLeafSerialization: true,
      resolverInfoEnricher: ({ parentType, returnType }) => ({
        schema,
        parentType: types.original(parentType),
        returnType: types.original(returnType),
      }),
    },
  };
}

/** The types of the compiler's schema, each created when it is first used. */
class CompilerTypes {
  readonly #isExact: CompilerSchemaOptions['isExact'];
  readonly #objects = new Map<GraphQLObjectType, GraphQLObjectType>();
  readonly #leaves = new Map<GraphQLLeafType, GraphQLLeafType>();
  readonly #originals = new Map<GraphQLOutputType, GraphQLOutputType>();

  constructor(isExact: CompilerSchemaOptions['isExact']) {
    this.#isExact = isExact;
  }

  /** The type of the original schema. */
  original(type: GraphQLOutputType): GraphQLOutputType {
    return this.#originals.get(type) ?? type;
  }

  ofObject(type: GraphQLObjectType): GraphQLObjectType {
    // Introspection types are the same in every schema.
    if (isIntrospectionType(type)) return type;
    const known = this.#objects.get(type);
    if (known) return known;
    let fields: ReturnType<GraphQLObjectType['getFields']> | undefined;
    const getFields = () => {
      const entries = () => Object.entries(type.getFields());
      fields ??= Object.fromEntries(entries().map(([name, field]) => [name, this.#ofField(type, field)]));
      return fields;
    };
    const made: GraphQLObjectType = Object.create(type, { getFields: { value: getFields } });
    this.#objects.set(type, made);
    this.#originals.set(made, type);
    return made;
  }

  #ofField(parent: GraphQLObjectType, field: Field): Field {
    const property = propertyOf(field);
    if (property === undefined) {
      // Without a resolver, compiled code would read the property directly here as well.
      const resolve = field.resolve ?? defaultFieldResolver;
      return { ...field, resolve, type: this.#ofType(field.type, false) };
    }
    const { resolve: _, ...unresolved } = field;
    const exact = this.#isExact(parent, property, getNamedType(field.type).name);
    return { ...unresolved, type: this.#ofType(field.type, exact), name: property };
  }

  /** @param exact whether its values need no serialization. */
  #ofType(type: GraphQLOutputType, exact: boolean): GraphQLOutputType {
    const made = this.#made(type, exact);
    this.#originals.set(made, type);
    return made;
  }

  #made(type: GraphQLOutputType, exact: boolean): GraphQLOutputType {
    if (isNonNullType(type)) return new GraphQLNonNull(this.#ofType(type.ofType, exact));
    if (isListType(type)) return new GraphQLList(this.#ofType(type.ofType, exact));
    if (isObjectType(type)) return this.ofObject(type);
    return isLeafType(type) && !exact ? this.#ofLeaf(type) : type;
  }

  #ofLeaf(type: GraphQLLeafType): GraphQLLeafType {
    const serialize = (value: unknown) => type.serialize(value);
    const made =
      this.#leaves.get(type) ?? new GraphQLScalarType({ name: `Serialized${type.name}`, serialize });
    this.#leaves.set(type, made);
    return made;
  }
}

type Field = GraphQLField<unknown, unknown>;

/** The property that a field reads, undefined for a field that does more. */
function propertyOf({ extensions, args }: Field): string | undefined {
  const name = extensions.property ?? extensions.pothosExposedField;
  return typeof name === 'string' && args.length === 0 && !extensions.isMade ? name : undefined;
}
