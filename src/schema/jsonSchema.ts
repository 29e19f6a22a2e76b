/** How values of the schema are in JSON, for the OpenAPI document and for tools. */

import { pageSize } from './loading/pagination.ts';

/** The JSON Schema of a scalar. */
type ScalarSchema = {
  readonly type: 'integer' | 'number' | 'string' | 'boolean';
  readonly format?: string;
};

export const scalarSchemas: Readonly<Record<string, ScalarSchema>> = {
  Int: { type: 'integer', format: 'int32' },
  Float: { type: 'number' },
  String: { type: 'string' },
  ID: { type: 'string' },
  Boolean: { type: 'boolean' },
  DateTime: { type: 'string', format: 'date-time' },
  LocalDate: { type: 'string', format: 'date' },
};

/** The size of a page of a list, and how many records come before it. */
export const limitSchema = { type: 'integer', minimum: 1, maximum: pageSize.highest } as const;
export const offsetSchema = { type: 'integer', minimum: 0 } as const;
