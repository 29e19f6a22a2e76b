/**
 * A variant of the schema for the compiler, so that compiled code calls fewer functions:
 *
 * - Compiled code calls the resolver of each field that has one. Here, a field that only reads a property of its parent has the
 *   name of that property and no resolver, so that compiled code reads the property directly.
 * - Compiled code would read arguments by itself. Then it would contain text of clients, which it must not, and it cannot read types
 *   that contain themselves, such as filters. Here, no field has arguments, and its resolver gets those that graphql-js reads.
 * - Compiled code serializes every value, unless that is disabled. It is disabled for the types in `exactTypes`. All other scalars and
 *   all enumerations have types of their own here, which are serialized.
 *
 * Resolvers and introspection never see these types.
 */

import {
  defaultFieldResolver,
  type FieldNode,
  type GraphQLField,
  type GraphQLFieldResolver,
  type GraphQLLeafType,
  GraphQLList,
  GraphQLNonNull,
  type GraphQLObjectType,
  type GraphQLOutputType,
  GraphQLScalarType,
  type GraphQLSchema,
  getArgumentValues,
  isIntrospectionType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
} from 'graphql';
import type { CompilerOptions } from 'graphql-jit';
import { findCoercedType } from '../../schema/operation.ts';

const known = new WeakMap<GraphQLSchema, ReturnType<typeof createCompilerSchema>>();

/** The variant of a schema. Its types are created when they are first used. */
export function compilerSchemaOf(schema: GraphQLSchema) {
  const found = known.get(schema) ?? createCompilerSchema(schema);
  known.set(schema, found);
  return found;
}

function createCompilerSchema(schema: GraphQLSchema) {
  const ofObject = createTypes();
  const query = schema.getQueryType();
  const getType = (name: string) => {
    const type = findCoercedType(name) ?? schema.getType(name);
    return isObjectType(type) ? ofObject(type) : type;
  };
  const getRootType: GraphQLSchema['getRootType'] = (operation) => {
    const type = schema.getRootType(operation);
    return type && ofObject(type);
  };
  const getPossibleTypes: GraphQLSchema['getPossibleTypes'] = (type) =>
    schema.getPossibleTypes(type).map(ofObject);
  const options: Partial<CompilerOptions> = {
    disableLeafSerialization: true,
    resolverInfoEnricher({ fieldName, ...info }) {
      const parentType = schema.getType(info.parentType.name);
      const field = isObjectType(parentType) ? parentType.getFields()[fieldName] : undefined;
      // Only the introspection fields of all types are missing here. They are the same in every schema.
      return field ? { schema, parentType, returnType: field.type } : { schema };
    },
  };
  const variant: GraphQLSchema = Object.create(schema, {
    getType: { value: getType },
    getQueryType: { value: () => query && ofObject(query) },
    getRootType: { value: getRootType },
    getPossibleTypes: { value: getPossibleTypes },
  });
  return { schema: variant, options };
}

/** A function that creates the variant of an object type. */
function createTypes(): (type: GraphQLObjectType) => GraphQLObjectType {
  const objects = new Map<GraphQLObjectType, GraphQLObjectType>();
  const leaves = new Map<GraphQLLeafType, GraphQLLeafType>();

  function ofObject(type: GraphQLObjectType): GraphQLObjectType {
    // Introspection types are the same in every schema.
    if (isIntrospectionType(type)) return type;
    const made = objects.get(type) ?? withFields(type, ofField);
    objects.set(type, made);
    return made;
  }

  function ofField(field: Field): Field {
    const property = propertyOf(field);
    if (property === undefined)
      return { ...field, args: [], resolve: resolverOf(field), type: ofType(field.type) };
    const { resolve: _, ...unresolved } = field;
    return { ...unresolved, type: ofType(field.type), name: property };
  }

  function ofType(type: GraphQLOutputType): GraphQLOutputType {
    if (isNonNullType(type)) return new GraphQLNonNull(ofType(type.ofType));
    if (isListType(type)) return new GraphQLList(ofType(type.ofType));
    if (isObjectType(type)) return ofObject(type);
    return isLeafType(type) && !exactTypes.has(type.name) ? ofLeaf(type) : type;
  }

  function ofLeaf(type: GraphQLLeafType): GraphQLLeafType {
    const serialize = (value: unknown) => type.serialize(value);
    const made = leaves.get(type) ?? new GraphQLScalarType({ name: `Serialized${type.name}`, serialize });
    leaves.set(type, made);
    return made;
  }

  return ofObject;
}

/** Always returns a resolver: without one, compiled code would read the property directly. */
function resolverOf(field: Field): GraphQLFieldResolver<unknown, unknown> {
  const { args, resolve = defaultFieldResolver } = field;
  if (args.length === 0) return resolve;
  return (parent, _none, context, info) => {
    // A resolver runs for a field of the document, so there is at least one node.
    const [node] = info.fieldNodes as readonly [FieldNode, ...FieldNode[]];
    return resolve(parent, getArgumentValues(field, node, info.variableValues), context, info);
  };
}

/** The type with other fields, which are made when they are first read. */
function withFields(type: GraphQLObjectType, change: (field: Field) => Field): GraphQLObjectType {
  let fields: ReturnType<GraphQLObjectType['getFields']> | undefined;
  const getFields = () => {
    fields ??= Object.fromEntries(
      Object.entries(type.getFields()).map(([name, field]) => [name, change(field)]),
    );
    return fields;
  };
  return Object.create(type, { getFields: { value: getFields } });
}

/** Types whose values need no serialization: columns of these types have no other values, and resolvers return no others. */
const exactTypes = new Set(['Int', 'String', 'Boolean', 'ID']);

type Field = GraphQLField<unknown, unknown>;

/** The property that a field reads, undefined for a field that does more. */
function propertyOf({ extensions, args }: Field): string | undefined {
  const name = extensions.property;
  return typeof name === 'string' && args.length === 0 ? name : undefined;
}
