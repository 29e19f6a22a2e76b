/**
 * The schema and the SQL of Mercurius: the part of Dovetail's schema that the workloads use, with one hand-written statement for
 * each field.
 */

import { GraphQLError, GraphQLScalarType } from 'graphql';
import type pg from 'pg';
import type { Statement } from './listen.ts';

export const typeDefs = `
  scalar DateTime

  type Query {
    dttDevices(first: Int = 50, offset: Int = 0): DttDeviceConnection!
    dttSession(databaseId: Int!): DttSession
    dttSessions(first: Int = 50, offset: Int = 0): DttSessionConnection!
    activeDttTemplate: DttTemplate
  }

  type Mutation {
    activateTemplate(template: DttTemplateReference!): ActivateTemplatePayload
  }

  input DttTemplateReference {
    databaseId: Int!
  }

  type ActivateTemplatePayload {
    template: DttTemplate
    scheduleTypeChanged: Boolean!
  }

  type DttDeviceConnection {
    nodes: [DttDevice!]!
  }

  type DttDevice {
    databaseId: Int!
    bubbleId: String!
    ownerId: Int!
    macAddress: String!
    serialNumber: String
    softwareVersion: String
    lastVisitedAt: DateTime
    lastLogAt: DateTime
    createdAt: DateTime!
    apiHits: Int!
  }

  type DttTemplate {
    databaseId: Int!
    bubbleId: String!
    ownerId: Int!
    name: String!
    description: String
    tagline: String
    message: String
    isPublic: Boolean!
    isActive: Boolean!
    handsFreeMode: Boolean!
    targetDepth: Float!
    targetWindow: Float!
    toyId: String
    createdAt: DateTime!
    updatedAt: DateTime!
    segments: [DttTemplateSegment!]!
  }

  type DttTemplateSegment {
    databaseId: Int!
    type: String!
    durationSeconds: Int!
    repeat: Int!
  }

  type DttSessionConnection {
    nodes: [DttSession!]!
  }

  type DttSession {
    databaseId: Int!
    bubbleId: String!
    ownerId: Int!
    name: String
    passed: Boolean
    createdAt: DateTime!
    trainerId: Int!
    templateId: Int
    trainer: DttDevice
    template: DttTemplate
    segments: [TrainerSegment!]!
  }

  type TrainerSegment {
    databaseId: Int!
    rawType: String!
    passed: Boolean
    gradePercent: Float
    points: Int
    durationMeasuredSeconds: Int
    durationTargetSeconds: Int
    repsMeasured: Int
    repsTarget: Int
    speedMeasured: Float
    speedTarget: Float
    targetDepth: Float
    targetWindow: Float
    timeInTargetDepthMilliseconds: Float
    strokeLength: Float
    distanceTravelledMetres: Float
    order: Int!
    createdAt: DateTime!
  }
`;

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

/** A row of one of the statements. Its columns are the fields of its GraphQL type. */
export type Row = Readonly<Record<string, unknown>>;
export interface Identified extends Row {
  readonly databaseId: number;
}
export interface SessionRow extends Identified {
  readonly trainerId: number;
  readonly templateId: number | null;
}

export function createQueries(pool: pg.Pool) {
  const prepared = (name: keyof typeof statements): Statement => ({ name, text: statements[name] });
  const rows = async <R extends Row>(name: keyof typeof statements, values: unknown[]): Promise<R[]> =>
    (await pool.query<R>({ ...prepared(name), values })).rows;
  const one = async <R extends Row>(name: keyof typeof statements, values: unknown[]): Promise<R | null> =>
    (await rows<R>(name, values))[0] ?? null;

  const byId = async (
    name: 'devicesById' | 'templatesById',
    viewer: number,
    ids: readonly (number | null)[],
  ) => {
    const wanted = [...new Set(ids.filter((id) => id !== null))];
    const found = wanted.length > 0 ? await rows<Identified>(name, [viewer, wanted]) : [];
    const rowOf = new Map(found.map((row) => [row.databaseId, row]));
    return ids.map((id) => (id === null ? null : (rowOf.get(id) ?? null)));
  };
  const grouped = async (name: 'segments' | 'templateSegments', key: string, ids: readonly number[]) => {
    const groups = new Map<unknown, Row[]>(ids.map((id) => [id, []]));
    for (const row of await rows(name, [[...groups.keys()]])) groups.get(row[key])?.push(row);
    return ids.map((id) => groups.get(id) ?? []);
  };

  return {
    devices: (viewer: number, first: number, offset: number) => rows('devices', [viewer, first, offset]),
    session: (viewer: number, id: number) => one<SessionRow>('session', [viewer, id]),
    sessions: (viewer: number, first: number, offset: number) =>
      rows<SessionRow>('sessions', [viewer, first, offset]),
    activeTemplate: (viewer: number) => one<Identified>('activeTemplate', [viewer]),
    activate: (viewer: number, id: number) => one('activate', [viewer, id]),
    /** For each id its row, or null if the viewer has no such row. */
    devicesById: (viewer: number, ids: readonly number[]) => byId('devicesById', viewer, ids),
    templatesById: (viewer: number, ids: readonly (number | null)[]) => byId('templatesById', viewer, ids),
    /** For each id its nested rows, in order. */
    segments: (ids: readonly number[]) => grouped('segments', 'sessionId', ids),
    templateSegments: (ids: readonly number[]) => grouped('templateSegments', 'templateId', ids),
  };
}

export type Queries = ReturnType<typeof createQueries>;

interface HandWrittenContext {
  readonly queries: Queries;
  readonly viewer: number;
}

interface PageArguments {
  first: number;
  offset: number;
}

export const resolvers = {
  DateTime: new GraphQLScalarType<Date, string>({
    name: 'DateTime',
    serialize: (value) => (value as Date).toISOString(),
  }),
  Query: {
    dttDevices: async (
      _root: unknown,
      { first, offset }: PageArguments,
      { queries, viewer }: HandWrittenContext,
    ) => ({
      nodes: await queries.devices(viewer, first, offset),
    }),
    dttSession: (
      _root: unknown,
      { databaseId }: { databaseId: number },
      { queries, viewer }: HandWrittenContext,
    ) => queries.session(viewer, databaseId),
    dttSessions: async (
      _root: unknown,
      { first, offset }: PageArguments,
      { queries, viewer }: HandWrittenContext,
    ) => ({
      nodes: await queries.sessions(viewer, first, offset),
    }),
    activeDttTemplate: (_root: unknown, _args: unknown, { queries, viewer }: HandWrittenContext) =>
      queries.activeTemplate(viewer),
  },
  Mutation: {
    activateTemplate: async (
      _root: unknown,
      { template: { databaseId } }: { template: { databaseId: number } },
      { queries, viewer }: HandWrittenContext,
    ) => {
      const activated = await queries.activate(viewer, databaseId);
      if (!activated) throw new GraphQLError('Template not found or not owned by user');
      const [template] = await queries.templatesById(viewer, [databaseId]);
      return { ...activated, template };
    },
  },
};
