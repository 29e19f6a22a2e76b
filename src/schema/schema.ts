/**
 * The main file of this folder: the GraphQL schema. Each import adds a type with its fields and its queries.
 *
 * Promises that every read of records has the viewer's condition of the table of models, and that the number of statements for a
 * document does not grow with the number of records. Fields are read by `loading/`, or by Pothos' plugin for Prisma, which is slower
 * (docs/architecture.md#add-a-field).
 */

import { readFileSync } from 'node:fs';
import { GraphQLObjectType, GraphQLSchema } from 'graphql';
import { root } from '../root.ts';
import { builder } from './builder.ts';
import { withConventionalFields } from './conventional.ts';
import { addFilters } from './filter.ts';
import './types/user.ts';
import './types/device.ts';
import './types/dttDevice.ts';
import './types/dttTemplate.ts';
import './types/dttSession.ts';
import './types/lkbxDevice.ts';
import './types/lockTemplate.ts';
import './types/lockSession.ts';
import './types/ossmDevice.ts';
import './types/node.ts';
import './types/activation.ts';
import './types/apiToken.ts';

addFilters();
const built = withConventionalFields(builder.toSchema()).toConfig();

/** Every query can be subscribed to: `liveReads.ts` executes it again after changes. */
const subscription = new GraphQLObjectType({
  name: 'Subscription',
  description:
    'What can be followed: every field of `Query`. Each delivers its result at once, and again after every change of ' +
    'what is selected.',
  fields: () => built.query?.toConfig().fields ?? {},
});

export const schema = new GraphQLSchema({
  ...built,
  subscription,
  description: `Your training and lock devices, programs and sessions, and the programs that you have imported from others. You are the
\`viewer\`: the user whose token comes with the request. Start there, or at the lists of \`Query\`.

- \`id\` is a global id, for caches and for \`node(id:)\`. \`databaseId\` is the integer of the REST interface. Queries for one
  record take the integer, and arguments of mutations take either.
- Lists are connections: 50 records a page unless told otherwise, and at most 100. Devices come in the order of their last
  visit, everything else newest first, unless \`orderBy\` says otherwise; \`where\` leaves out what is not wanted.
- A record that is missing, or not yours to see, is null. A field that can fail by itself is nullable as well, so that an
  error erases it and nothing beside it; what was read together with its record is non-null.
- A gateway may stand in front of another service, and know only what that sends. There, a nullable field whose description says nothing
  about null is null where its value is not known.
- Every error has \`extensions.code\`, and one about an argument names it in \`extensions.argument\`.
- A set of values that the service closes is an enum with \`UNKNOWN\`, for what it may add one day, beside a field \`raw…\` with
  the text as it came. A set that the service leaves open is text. The other enums are the gateway's own.
- What is \`@deprecated\` works as before until the day that its reason names. New fields, and new values of enums, may come at any time.
- Units are in the names of the fields. A field without one has none, or one that is not known.`,
});

/** The schema as text, sorted. A test writes the file. */
export const printedSchema = (): string => readFileSync(new URL('schema.graphql', root), 'utf8').trimEnd();
