/** Contestant: Mercurius with its JIT and its own loaders, over a hand-written statement for each field that the workloads use. */

import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fastify } from 'fastify';
import { GraphQLError, GraphQLScalarType } from 'graphql';
import { mercurius } from 'mercurius';
import { root } from '../contestants.ts';
import { announce, authenticate, openPool } from './listen.ts';

const device = `id AS "databaseId", "bubbleId", "ownerId", "macAddress", "serialNumber", "softwareVersion",
  "lastVisited" AS "lastVisitedAt", "lastLogAt", "createdDate" AS "createdAt", "apiHits"`;

const session = `id AS "databaseId", "bubbleId", "ownerId", name, passed, "createdAt", "trainerId", "templateId"`;

const segment = `"sessionId", id AS "databaseId", type AS "rawType", passed, "percentGrade" AS "gradePercent", points,
  "durationMeasured" AS "durationMeasuredSeconds", "durationTarget" AS "durationTargetSeconds", "repsMeasured", "repsTarget", "speedMeasured", "speedTarget", "targetDepth", "targetWindow",
  "longestDeepthroat" AS "timeInTargetDepthMilliseconds", "strokeLength", "distanceTravelled" AS "distanceTravelledMetres", "order", "createdAt"`;

/** The viewer is $1. */
const template = `t.id AS "databaseId", t."bubbleId", t."ownerId", t.name, t.description, t.tagline, t.message,
  t."isPublic", t."handsFreeMode", t."targetDepth", t."targetWindow", t."toyId", t."createdDate" AS "createdAt", t."updatedAt",
  EXISTS (SELECT FROM "User" u WHERE u.id = $1 AND u."activeTemplateId" = t.id) AS "isActive"`;

const visibleTemplate = `(t."ownerId" = $1 OR EXISTS
  (SELECT FROM "DttLibraryEntry" i WHERE i."templateId" = t.id AND i."userId" = $1))`;

const statements = {
  devices: `SELECT ${device} FROM "DttDevice" WHERE "ownerId" = $1
    ORDER BY "lastVisited" DESC NULLS LAST, id DESC LIMIT $2 OFFSET $3`,
  devicesById: `SELECT ${device} FROM "DttDevice" WHERE "ownerId" = $1 AND id = ANY($2::int[])`,
  session: `SELECT ${session} FROM "DttSession" WHERE "ownerId" = $1 AND id = $2`,
  sessions: `SELECT ${session} FROM "DttSession" WHERE "ownerId" = $1
    ORDER BY "createdAt" DESC, id DESC LIMIT $2 OFFSET $3`,
  segments: `SELECT ${segment} FROM "TrainerSegment" WHERE "sessionId" = ANY($1::int[])
    ORDER BY "sessionId", "order", id`,
  activeTemplate: `SELECT ${template} FROM "DttTemplate" t
    WHERE t.id = (SELECT "activeTemplateId" FROM "User" WHERE id = $1) AND ${visibleTemplate}`,
  templatesById: `SELECT ${template} FROM "DttTemplate" t WHERE t.id = ANY($2::int[]) AND ${visibleTemplate}`,
  templateSegments: `SELECT "templateId", id AS "databaseId", type, duration AS "durationSeconds", repeat FROM "DttTemplateSegment"
    WHERE "templateId" = ANY($1::int[]) ORDER BY "templateId", position`,
  activate: `WITH before AS (SELECT id, "scheduleType" FROM "User" WHERE id = $1 FOR UPDATE)
    UPDATE "User" SET "activeTemplateId" = $2, "scheduleType" = 'single' FROM before
    WHERE "User".id = before.id AND EXISTS (SELECT FROM "DttTemplate" WHERE id = $2 AND "ownerId" = $1)
    RETURNING before."scheduleType" <> 'single' AS "scheduleTypeChanged"`,
};

type Statement = keyof typeof statements;

/** A row of one of the statements. Its columns are the fields of its GraphQL type. */
type Row = Readonly<Record<string, unknown>>;

const pool = openPool();

const rows = async (name: Statement, ...values: unknown[]): Promise<Row[]> =>
  (await pool.query<Row>({ name, text: statements[name], values })).rows;

interface Context {
  readonly viewer: number;
}

const page =
  (name: Statement) =>
  async (_root: unknown, { first = 50, offset = 0 }, { viewer }: Context) => ({
    nodes: await rows(name, viewer, first, offset),
  });

const resolvers = {
  DateTime: new GraphQLScalarType<Date, string>({
    name: 'DateTime',
    serialize: (value) => (value as Date).toISOString(),
  }),
  Query: {
    dttDevices: page('devices'),
    dttSessions: page('sessions'),
    dttSession: async (_root: unknown, { databaseId }: Row, { viewer }: Context) =>
      (await rows('session', viewer, databaseId))[0],
    activeDttTemplate: async (_root: unknown, _args: unknown, { viewer }: Context) =>
      (await rows('activeTemplate', viewer))[0],
  },
  Mutation: {
    activateTemplate: async (
      _root: unknown,
      { template: { databaseId } }: { template: Row },
      { viewer }: Context,
    ) => {
      const [activated] = await rows('activate', viewer, databaseId);
      if (!activated) throw new GraphQLError('Template not found or not owned by user');
      const [activeTemplate] = await rows('templatesById', viewer, [databaseId]);
      return { ...activated, template: activeTemplate };
    },
  },
};

type Batch = readonly { readonly obj: Row }[];

/** The cache of the loaders is off, since its keys are whole rows as JSON. The statements themselves remove duplicates. */
const loader = (loader: (batch: Batch, context: Context) => Promise<unknown[]>) => ({
  loader,
  opts: { cache: false },
});

/** Loads the record of each row whose id a column has, or null if the viewer has no such record. */
const linked = (name: Statement, column: string) =>
  loader(async (batch, { viewer }) => {
    const ids = [...new Set(batch.map(({ obj }) => obj[column]))].filter((id) => id !== null);
    const found = ids.length > 0 ? await rows(name, viewer, ids) : [];
    const rowOf = new Map(found.map((row) => [row.databaseId, row]));
    return batch.map(({ obj }) => rowOf.get(obj[column]) ?? null);
  });

/** Loads the nested rows of each row, in order. */
const nested = (name: Statement, column: string) =>
  loader(async (batch) => {
    const groups = new Map<unknown, Row[]>(batch.map(({ obj }) => [obj.databaseId, []]));
    for (const row of await rows(name, [...groups.keys()])) groups.get(row[column])?.push(row);
    return batch.map(({ obj }) => groups.get(obj.databaseId) ?? []);
  });

const app = fastify();
app.register(mercurius, {
  schema: readFileSync(join(root, 'schema.graphql'), 'utf8'),
  // Their parameters are narrower than Mercurius' own types, which do not know this context.
  resolvers: resolvers as never,
  jit: 1,
  graphiql: false,
  context: async ({ headers }) => {
    const viewer = await authenticate(pool, headers.authorization);
    if (viewer === null) throw new GraphQLError('Unauthorized');
    return { viewer };
  },
  loaders: {
    DttSession: {
      segments: nested('segments', 'sessionId'),
      trainer: linked('devicesById', 'trainerId'),
      template: linked('templatesById', 'templateId'),
    },
    DttTemplate: { segments: nested('templateSegments', 'templateId') },
  } as never,
});

await app.listen({ port: 0, host: '127.0.0.1' });
announce((app.server.address() as AddressInfo).port);
