/**
 * The schema as the compiler is given it, in which values take less than calls of functions:
 *
 * - It calls a resolver for each field that has one. A field that is a property of what it belongs to is called like that
 *   property here, and has no resolver, so that compiled code reads it off.
 * - It serializes every value, unless it is told not to. It is told so of scalars and enumerations, but for values that are
 *   written otherwise than they are, or may not be valid (times and numbers may be infinite): these have types of their own
 *   here, which are serialized as ever.
 *
 * Resolvers, and the introspection, never see these types.
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
  /** Has resolvers told of the types that the schema itself has. */
  readonly options: Pick<CompilerOptions, 'resolverInfoEnricher' | 'disableLeafSerialization'>;
}

/** The extension of a field whose resolver gives a property of what it belongs to, and does nothing else. */
export const readsProperty = (name: string) => ({ property: name });

/**
 * The extension of a field whose property is made when it is read, which may fail: compiled code has nothing that would
 * catch it but around resolvers.
 */
export const makesProperty = { isMade: true };

export interface CompilerSchemaOptions {
  /** Finds types that only the compiler knows. */
  findType(name: string): GraphQLNamedType | undefined;
  /** Whether a property is always null, or a value of the type with this name as a response has it. */
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

/** The types as the compiler is given them, each made when it is met. */
class CompilerTypes {
  readonly #isExact: CompilerSchemaOptions['isExact'];
  readonly #objects = new Map<GraphQLObjectType, GraphQLObjectType>();
  readonly #leaves = new Map<GraphQLLeafType, GraphQLLeafType>();
  readonly #originals = new Map<GraphQLOutputType, GraphQLOutputType>();

  constructor(isExact: CompilerSchemaOptions['isExact']) {
    this.#isExact = isExact;
  }

  /** The type of the schema itself. */
  original(type: GraphQLOutputType): GraphQLOutputType {
    return this.#originals.get(type) ?? type;
  }

  ofObject(type: GraphQLObjectType): GraphQLObjectType {
    // Meta fields lead to these, whatever schema they are asked of.
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
      // Of a field without a resolver, compiled code reads the property off as well.
      const resolve = field.resolve ?? defaultFieldResolver;
      return { ...field, resolve, type: this.#ofType(field.type, false) };
    }
    const { resolve: _, ...unresolved } = field;
    const exact = this.#isExact(parent, property, getNamedType(field.type).name);
    return { ...unresolved, type: this.#ofType(field.type, exact), name: property };
  }

  /** @param exact whether its values are what a response has. */
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

/** The property that a field is, undefined for one that is more than that. */
function propertyOf({ extensions, args }: Field): string | undefined {
  const name = extensions.property ?? extensions.pothosExposedField;
  return typeof name === 'string' && args.length === 0 && !extensions.isMade ? name : undefined;
}
