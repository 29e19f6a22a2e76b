/** The GraphQL schema: each import adds a type with its fields and its queries. */

import { lexicographicSortSchema, printSchema } from 'graphql';
import { builder } from './builder.ts';
import './types/device.ts';
import './types/user.ts';
import './types/dttDevice.ts';
import './types/dttTemplate.ts';
import './types/dttSession.ts';
import './types/lkbxDevice.ts';
import './types/lockTemplate.ts';
import './types/lockSession.ts';
import './types/ossmDevice.ts';
import './types/devices.ts';

export const schema = builder.toSchema();

/** The schema as text, in an order that a new type or field does not disturb. */
export const printedSchema = () => printSchema(lexicographicSortSchema(schema));
