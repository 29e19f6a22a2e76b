/** The GraphQL schema: each import adds a type with its fields and its queries. */

import { lexicographicSortSchema, printSchema } from 'graphql';
import { builder } from './builder.ts';
import './device.ts';
import './user.ts';
import './dttDevice.ts';
import './dttTemplate.ts';
import './dttSession.ts';
import './lkbxDevice.ts';
import './lockTemplate.ts';
import './lockSession.ts';
import './ossmDevice.ts';
import './devices.ts';

export const schema = builder.toSchema();

/** The schema as text, in an order that a new type or field does not disturb. */
export const printedSchema = () => printSchema(lexicographicSortSchema(schema));
