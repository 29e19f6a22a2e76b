/** The parameters and the data of a route as JSON Schema, with the descriptions of the GraphQL schema or those of `overrides.ts`. */

import {
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLEnumType,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  getNamedType,
  isEnumType,
  isListType,
  isNonNullType,
  isObjectType,
  Kind,
  type SelectionNode,
  type SelectionSetNode,
} from 'graphql';
import type { ParameterObject, ReferenceObject, SchemaObject } from 'openapi3-ts/oas31';
import { has, type Route } from '../src/rest/routes.ts';
import { limitSchema, offsetSchema, scalarSchemas } from '../src/schema/jsonSchema.ts';
import { pageSize } from '../src/schema/loading/pagination.ts';
import { fragmentsOf } from '../src/schema/operation.ts';
import { schema } from '../src/schema/schema.ts';
import { overrides } from './overrides.ts';

export const idParameter = {
  name: 'id',
  in: 'path',
  required: true,
  description: 'Integer id of the record.',
  schema: { type: 'integer', minimum: 1 },
} as const satisfies ParameterObject;

/** Of each list. */
export const listParameters = {
  Limit: {
    name: 'limit',
    in: 'query',
    description: 'How many records the page has at most.',
    schema: { ...limitSchema, default: pageSize.default },
  },
  Offset: {
    name: 'offset',
    in: 'query',
    description: 'How many records to skip.',
    schema: { ...offsetSchema, default: 0 },
  },
} as const satisfies Record<string, ParameterObject>;

export type Schema = SchemaObject | ReferenceObject;
/** The selected properties of an object, by their names. */
type Selected = Record<string, { readonly schema: Schema; readonly isOptional: boolean }>;

/** What all functions that describe a part of an operation need. */
interface Scope {
  /** The operation's name, for errors. */
  readonly name: string;
  readonly fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  /** The named schemas of the OpenAPI document. */
  readonly components: Record<string, SchemaObject>;
}

/**
 * Describes the data of a route: its schema, and the type of its records.
 * @param components the schemas of enums, and of objects that are selected by a single fragment, are added to it.
 * @throws for a selection whose JSON can have different shapes.
 */
export function describeSelection(
  route: Route,
  components: Record<string, SchemaObject>,
): { readonly data: Schema; readonly record: GraphQLObjectType } {
  const scope = { name: route.name, fragments: fragmentsOf(route.document), components };
  const root = schema.getRootType(route.operation.operation);
  const node = route.operation.selectionSet.selections[0];
  const field = node?.kind === Kind.FIELD ? root?.getFields()[node.name.value] : undefined;
  if (node?.kind !== Kind.FIELD || !field) throw new Error(`${scope.name} does not select its data first`);

  // If the route responds to null with an error, its data is never null.
  const selected =
    route.missing === undefined
      ? schemaOfField(field, node, scope)
      : presentSchemaOf(field.type, node, scope);
  const list = has('page', node) ? objectOf({ data: { type: 'array', items: selected } }) : selected;
  const data =
    route.isList && 'properties' in list
      ? objectOf({ ...list.properties, pagination: reference('schemas', 'Pagination') })
      : list;
  return { data, record: recordOf(getNamedType(field.type), node, route) };
}

/** The type of a route's records. In a list and in the payload of a mutation, the records are one level below the field. */
function recordOf(type: GraphQLNamedType, { selectionSet }: FieldNode, route: Route): GraphQLObjectType {
  if (!isObjectType(type)) throw new Error(`${route.name} does not give a record`);
  const below = selectionSet?.selections.find(
    (part) => part.kind === Kind.FIELD && (route.isList || has('spread', part)),
  );
  const inner = below?.kind === Kind.FIELD && getNamedType(type.getFields()[below.name.value]?.type);
  return isObjectType(inner) ? inner : type;
}

/** Whether a field is null only for an account that lives elsewhere. */
export const isNullIfUnknown = ({
  extensions,
}: Pick<GraphQLField<unknown, unknown>, 'extensions'>): boolean => extensions.nullIfUnknown === true;

/**
 * Three kinds of nullable fields are never null here: a field that is null only with an error, since the response is successful; a
 * field that may be unknown only for an account that lives elsewhere, which REST does not serve; and an optional field, which is left out
 * instead.
 */
function schemaOfField(field: GraphQLField<unknown, unknown>, node: FieldNode, scope: Scope): Schema {
  const hasValue = field.extensions.nullOnlyWithError || has('optional', node) || isNullIfUnknown(field);
  return (hasValue ? presentSchemaOf : schemaOf)(field.type, node, scope);
}

function schemaOf(type: GraphQLOutputType, node: FieldNode, scope: Scope): Schema {
  const present = presentSchemaOf(type, node, scope);
  if (isNonNullType(type)) return present;
  return '$ref' in present
    ? { anyOf: [present, { type: 'null' }] }
    : { ...present, type: [...[present.type ?? []].flat(), 'null'] };
}

/** The schema of a value that is not null. */
function presentSchemaOf(type: GraphQLOutputType, node: FieldNode, scope: Scope): Schema {
  if (isNonNullType(type)) return presentSchemaOf(type.ofType, node, scope);
  if (isListType(type)) return { type: 'array', items: schemaOf(type.ofType, node, scope) };
  if (isObjectType(type) && node.selectionSet) return objectSchemaOf(node.selectionSet, type, scope);
  if (isEnumType(type)) {
    scope.components[type.name] ??= enumSchemaOf(type);
    return reference('schemas', type.name);
  }
  const scalar = scalarSchemas[getNamedType(type).name];
  if (!scalar) throw new Error(`${scope.name} selects ${type}, which has no type in JSON`);
  return scalar;
}

/** The schema of a selection. If the selection is a single fragment, the schema is a component with the fragment's name. */
function objectSchemaOf(selection: SelectionSetNode, type: GraphQLObjectType, scope: Scope): Schema {
  const [first, ...others] = selection.selections;
  const properties = propertiesOf(selection, type, scope);
  const names = Object.keys(properties);
  const object = {
    ...objectOf(
      Object.fromEntries(names.map((name) => [name, properties[name]?.schema ?? {}])),
      names.filter((name) => !properties[name]?.isOptional),
    ),
    description: descriptionOf(type),
  };
  if (first?.kind !== Kind.FRAGMENT_SPREAD || others.length > 0) return object;
  const name = first.name.value.replace(/Fields$/, '');
  scope.components[name] = object;
  return reference('schemas', name);
}

/** The description of a type. */
export const descriptionOf = ({ name, description }: GraphQLObjectType) =>
  overrides[name]?.description ?? description ?? '';

const propertiesOf = ({ selections }: SelectionSetNode, type: GraphQLObjectType, scope: Scope): Selected =>
  Object.assign({}, ...selections.map((part) => propertiesFrom(part, type, scope)));

/** The properties of one part of a selection: one for a field, several for a fragment or a field with `@spread`. */
function propertiesFrom(part: SelectionNode, type: GraphQLObjectType, scope: Scope): Selected {
  if (part.kind !== Kind.FIELD) {
    const fragment = part.kind === Kind.INLINE_FRAGMENT ? part : scope.fragments.get(part.name.value);
    const condition = fragment?.typeCondition?.name.value ?? type.name;
    if (!fragment || condition !== type.name)
      throw new Error(`${scope.name} selects what only some of its records have`);
    return propertiesOf(fragment.selectionSet, type, scope);
  }
  const field = type.getFields()[part.name.value];
  if (!field) throw new Error(`${scope.name} selects ${part.name.value}, which is not described`);
  const inner = getNamedType(field.type);
  if (has('spread', part) && part.selectionSet && isObjectType(inner))
    return propertiesOf(part.selectionSet, inner, scope);
  const { values, description = field.description } =
    overrides[`${type.name}.${field.name}`] ?? overrides[field.name] ?? {};
  const schema = {
    ...schemaOfField(field, part, scope),
    ...(values && { enum: [...values] }),
    ...(description && { description }),
  };
  return { [(part.alias ?? part.name).value]: { schema, isOptional: has('optional', part) } };
}

function enumSchemaOf(type: GraphQLEnumType): SchemaObject {
  const values = type.getValues();
  const explained = values.map(({ name, description }) => `- \`${name}\`: ${description}`);
  return {
    type: 'string',
    enum: values.map(({ name }) => name),
    description: [type.description, '', ...explained].join('\n'),
  };
}

/** The schema of an object. It may have other properties as well, so that adding one breaks no program. */
export function objectOf(
  properties: Readonly<Record<string, Schema>>,
  required: string[] = Object.keys(properties),
): SchemaObject {
  return { type: 'object', properties, required };
}

/** A reference to a component of the document. */
export function reference(
  kind: 'schemas' | 'parameters' | 'headers' | 'responses',
  name: string,
): ReferenceObject {
  return { $ref: `#/components/${kind}/${name}` };
}
