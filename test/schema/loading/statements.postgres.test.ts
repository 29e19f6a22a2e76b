/** The number of SQL statements for a response is the same for 50 records as for 2. */

import { afterAll, expect, it } from 'vitest';
import type { PrismaClient } from '../../../src/database/generated/prisma/client.ts';
import { routes } from '../../../src/rest/routes.ts';
import { addToken } from '../../support/accounts.ts';
import { graphqlOnce, openTestGateway, rest } from '../../support/gateway.ts';
import { noteStatements } from '../../support/statements.ts';

interface Owner {
  readonly token: string;
  /** Global ids of the owner's sessions. */
  readonly sessions: readonly string[];
}

const statements = noteStatements();

const gateway = await openTestGateway();
const few = await createOwner(gateway.database.client, 'few', 2);
const many = await createOwner(gateway.database.client, 'many', 50);
afterAll(() => gateway.close());

/** Large queries as a frontend may send them, each with the highest allowed number of statements. */
const queries: readonly [string, number, string][] = [
  [
    'sessions with trainer, template and segments',
    4,
    `{ dttSessions(first: 50) { nodes {
      name
      segments { type points }
      trainer { serialNumber }
      template { name isActive segments { type durationSeconds } }
    } } }`,
  ],
  [
    'devices with sessions with template with segments',
    6,
    `{ dttDevices(first: 50) { totalCount nodes {
      owner { username }
      sessions(first: 5) { totalCount nodes { segments { type } template { name segments { type } } } }
    } } }`,
  ],
  [
    'sessions with the records of their owner',
    17,
    `{ dttSessions(first: 50) { nodes { owner {
      activeDttTemplate { name } latestDttSession { name } activeLockSession { name }
      devices(first: 2) { nodes { databaseId } }
      dttDevices(first: 2) { totalCount nodes { serialNumber sessions(first: 1) { nodes { name } } } }
      dttTemplates(first: 2) { nodes { segments { type } } }
      lockSessions(first: 2) { totalCount nodes { segments { type } } }
    } } } }`,
  ],
  [
    'devices of all kinds with their owners',
    6,
    `{
      dttDevices(first: 50) { nodes { ...Owned } }
      lkbxDevices(first: 50) { nodes { ...Owned } }
      ossmDevices(first: 50) { nodes { ...Owned } }
    }
    fragment Owned on Device { owner { username } }`,
  ],
  [
    'nodes with segments and trainers',
    2,
    'query ($ids: [ID!]!) { nodes(ids: $ids) { ... on DttSession { segments { type } trainer { serialNumber } } } }',
  ],
];

/** Sends the query twice and counts the statements of each: the operation is first interpreted, then compiled. */
async function countStatements(owner: Owner, query: string) {
  // The comment makes it a document that is not compiled yet.
  const document = `# ${owner.token}\n${query}`;
  const variables = { ids: owner.sessions };
  const interpreted = await countedResponse(owner, document, variables);
  // Nothing reads this variable, which keeps the response from coming from the cache.
  const compiled = await countedResponse(owner, document, { ...variables, 'not a name': 1 });
  expect(compiled.data).toEqual(interpreted.data);
  return { data: interpreted.data, counts: [interpreted.count, compiled.count] };
}

async function countedResponse({ token }: Owner, query: string, variables: Record<string, unknown>) {
  statements.length = 0;
  const { data, errors } = await graphqlOnce(gateway, token, query, variables);
  expect(errors).toBeUndefined();
  return { data, count: statements.length };
}

it.each(queries)('a query takes as many statements for 50 records as for 2: %s', async (_, most, query) => {
  const { counts } = await countStatements(few, query);
  expect(Math.min(...counts)).toBeGreaterThan(0);
  expect(Math.max(...counts)).toBeLessThanOrEqual(most);
  expect((await countStatements(many, query)).counts).toEqual(counts);
  // None reads all records: each reads a page, a number, or records by their ids.
  for (const text of statements) expect(text).toMatch(/^SELECT count| LIMIT \$\d$|"id" = ANY\(\$\d\)\)?$/);
});

it('statistics of which only a number of sessions in all is selected read neither segments nor keys', async () => {
  const query = '{ dttSessionStats(by: [DAY, TEMPLATE, SEGMENT_TYPE]) { total { sessionCount } } }';
  const { data } = await countedResponse(many, query, {});
  expect(data.dttSessionStats.total).toEqual({ sessionCount: 50 });
  expect(statements).toEqual([expect.not.stringMatching(/TrainerSegment|templateId|createdAt|passed|type/)]);
});

it.each(routes.filter(({ isList }) => isList))(
  'a REST route takes as many statements for 50 records as for 2: $path',
  async ({ path }) => {
    const counts: number[] = [];
    for (const { token } of [few, many]) {
      statements.length = 0;
      expect((await rest(gateway, token, `${path}?limit=50`)).status).toBe(200);
      counts.push(statements.length);
    }
    expect(counts).toEqual([1, 1]);
  },
);

/** Creates a user with `size` records of each type. Each session has its own trainer and template, and segments. */
async function createOwner(database: PrismaClient, username: string, size: number): Promise<Owner> {
  const { id: ownerId } = await database.user.create({ data: { username, subscriptionTier: 'ultra' } });
  const token = await addToken(database, username);
  const own = `SELECT $1::int, $2 || n`;
  const many = 'FROM generate_series(1, $3::int) n';
  for (const text of [
    `INSERT INTO "DttDevice" ("ownerId", "bubbleId") ${own} ${many}`,
    `INSERT INTO "LkbxDevice" ("ownerId", "bubbleId") ${own} ${many}`,
    `INSERT INTO "OssmDevice" ("ownerId", "bubbleId", chip) ${own}, 'ESP32-S3' ${many}`,
    `INSERT INTO "DttTemplate" ("ownerId", "bubbleId", name, "targetDepth", "targetWindow") ${own}, $2 || n, 50, 10 ${many}`,
    `INSERT INTO "LockTemplate" ("ownerId", name, duration) ${own}, 60 ${many}`,
    `INSERT INTO "DttSession" ("ownerId", "bubbleId", "trainerId", "templateId") ${own}, d.id, t.id ${many}
      JOIN "DttDevice" d ON d."bubbleId" = $2 || n JOIN "DttTemplate" t ON t."bubbleId" = $2 || n`,
    `INSERT INTO "LockSession" ("ownerId", "bubbleId", "publicId", "lockState", duration, "templateId")
      ${own}, $2 || n, 'completed', 60, t.id ${many} JOIN "LockTemplate" t ON t.name = $2 || n`,
  ])
    await database.$executeRawUnsafe(text, ownerId, username, size);
  for (const text of [
    `INSERT INTO "DttTemplateSegment" ("templateId", position, type, duration)
      SELECT id, n, 'training', 60 FROM "DttTemplate", generate_series(0, 1) n WHERE "ownerId" = $1`,
    `INSERT INTO "TrainerSegment" ("sessionId", "order", type)
      SELECT id, n, 'endurance' FROM "DttSession", generate_series(0, 1) n WHERE "ownerId" = $1`,
    `INSERT INTO "LockSegment" ("sessionId", type, "isLocked")
      SELECT id, 'lock', n = 0 FROM "LockSession", generate_series(0, 1) n WHERE "ownerId" = $1`,
    `UPDATE "User" SET "activeTemplateId" = (SELECT min(id) FROM "DttTemplate" WHERE "ownerId" = $1) WHERE id = $1`,
  ])
    await database.$executeRawUnsafe(text, ownerId);
  const sessions = await database.dttSession.findMany({ where: { ownerId }, orderBy: { id: 'asc' } });
  return { token, sessions: sessions.map(({ id }) => Buffer.from(`DttSession:${id}`).toString('base64url')) };
}
