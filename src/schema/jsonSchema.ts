/** How values of the schema are in JSON, for the OpenAPI document and for tools. */

import type { SchemaObject } from 'openapi3-ts/oas31';

/** The JSON Schema of each scalar. */
export const scalarSchemas: Readonly<Record<string, SchemaObject>> = {
  Int: { type: 'integer', format: 'int32' },
  Float: { type: 'number' },
  String: { type: 'string' },
  ID: { type: 'string' },
  Boolean: { type: 'boolean' },
  DateTime: { type: 'string', format: 'date-time' },
  LocalDate: { type: 'string', format: 'date' },
};
