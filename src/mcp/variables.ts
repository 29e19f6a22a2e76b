/** The JSON Schema of an operation's variables. */

import {
  type GraphQLInputType,
  getNamedType,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
  type OperationDefinitionNode,
  typeFromAST,
  valueFromASTUntyped,
} from 'graphql';
import type { SchemaObject } from 'openapi3-ts/oas31';
import { reference, type Schema, scalars } from '../rest/jsonSchema.ts';
import { schema } from '../schema/schema.ts';
import { type ObjectSchema, objectSchema } from './tool.ts';

type Parts = Record<string, SchemaObject>;

export function schemaOfVariables(operation: OperationDefinitionNode): ObjectSchema {
  const parts: Parts = {};
  const properties: Record<string, object> = {};
  const required: string[] = [];
  for (const { variable, type: node, defaultValue, description } of operation.variableDefinitions ?? []) {
    const type = typeFromAST(schema, node as Parameters<typeof typeFromAST>[1]) as
      | GraphQLInputType
      | undefined;
    const name = variable.name.value;
    properties[name] = {
      // A type that only the schema of a subgraph has is not described.
      ...(type && schemaOf(type, parts)),
      ...(description && { description: description.value }),
      ...(defaultValue && { default: valueFromASTUntyped(defaultValue) }),
    };
    if (isNonNullType(type) && !defaultValue) required.push(name);
  }
  return objectSchema(properties, { required, parts });
}

/** The schema allows no null: a value that is not required can be left out. */
function schemaOf(type: GraphQLInputType, parts: Parts): Schema {
  if (isNonNullType(type)) return schemaOf(type.ofType, parts);
  if (isListType(type)) return { type: 'array', items: schemaOf(type.ofType, parts) };
  const named = getNamedType(type);
  if (isEnumType(named)) return { type: 'string', enum: named.getValues().map(({ name }) => name) };
  if (!isInputObjectType(named)) return scalars[named.name] ?? {};
  if (!parts[named.name]) {
    // Added before its fields are described, since they may refer to it.
    const part: SchemaObject = { type: 'object' };
    parts[named.name] = part;
    const fields = Object.values(named.getFields());
    Object.assign(part, {
      ...(named.description && { description: named.description }),
      properties: Object.fromEntries(
        fields.map(({ name, type: ofField, description }) => [
          name,
          { ...schemaOf(ofField, parts), ...(description && { description }) },
        ]),
      ),
      required: fields
        .filter(({ type: ofField, defaultValue }) => isNonNullType(ofField) && defaultValue === undefined)
        .map(({ name }) => name),
      additionalProperties: false,
      ...(named.isOneOf && { minProperties: 1, maxProperties: 1 }),
    });
  }
  return reference('schemas', named.name);
}
