/**
 * Fields as Pothos' documentation writes them: a schema with one for every model and every relation shows each user what the reader
 * shows, and a field that Prisma cannot restrict fails.
 */

import SchemaBuilder from '@pothos/core';
import { execute, type GraphQLSchema, parse } from 'graphql';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { relationOf, relationsOf } from '../../src/database/dataModel.ts';
import { type VisibleModel, visibleModels, visibleTo } from '../../src/database/models.ts';
import { delegateOf, scopedTo } from '../../src/database/scope/scope.ts';
import { clientErrorOf } from '../../src/errors.ts';
import { type BuilderTypes, builderOptions } from '../../src/schema/builder.ts';
import { createContext } from '../../src/schema/context.ts';
import { withConventionalFields } from '../../src/schema/conventional.ts';
import { type Account, importTemplate } from '../support/accounts.ts';
import { databaseWith } from '../support/setUp.ts';

const { database, alice, bob } = await databaseWith('alice', 'bob');
const { client } = database;
await importTemplate(client, alice, bob.dttTemplates[0]);
// Bob has more of everything, and a session of alice's is of his template.
const ownerId = bob.userId;
for (const each of ['a', 'b'])
  await client.dttSession.create({
    data: {
      ...{ ownerId, bubbleId: each, templateId: bob.dttTemplates[0], trainerId: bob.dttDevices[0] },
      segments: { create: [{ order: 0, type: 'bounce' }] },
    },
  });
await client.dttSession.update({
  where: { id: alice.dttSessions[0] ?? 0 },
  data: { templateId: bob.dttTemplates[0] },
});
await client.user.update({ where: { id: ownerId }, data: { activeTemplateId: bob.dttTemplates[0] } });

/** Relations that Prisma cannot restrict, and what their errors say. */
const refused: readonly [model: VisibleModel, name: string, says: string][] = [
  ['User', 'activeTemplate', "toOne(DttTemplate, 'activeTemplateId')"],
  ['User', 'activeEntry', "toOne(DttLibraryEntry, 'activeTemplateId')"],
  ['User', 'mirrored', 'who may see a MirroredAccount'],
  ['DttTemplate', 'owner', "toOne(User, 'ownerId')"],
  ['DttLibraryEntry', 'template', "toOne(DttTemplate, 'templateId')"],
  ['DttSession', 'template', "toOne(DttTemplate, 'templateId')"],
];
const allowedOf = (model: VisibleModel) =>
  relationsOf(model).filter((name) => !refused.some(([of, link]) => of === model && link === name));
const linkAt = (model: VisibleModel, name: string) => {
  const link = relationOf(model, name) ?? expect.fail('there is no such relation');
  return { ...link, model: link.model as VisibleModel, inverse: link.inverse ?? '' };
};
/** The column that identifies a row of the viewer's. */
const keyOf = (model: VisibleModel) => (model === 'DttLibraryEntry' ? 'templateId' : 'id');

/** Such a builder takes a model that is a value. The types of Pothos follow a model that is known. */
interface Fields {
  exposeInt(name: string): object;
  relation(name: string, options?: object): object;
  relationCount(name: string): object;
  relatedConnection(name: string, options: object): object;
}
const newBuilder = () => new SchemaBuilder<BuilderTypes>(builderOptions);

/** A schema as the documentation of the plugin writes it, which names no viewer. */
function build(relations: (model: VisibleModel) => readonly string[]): GraphQLSchema {
  const builder = newBuilder();
  builder.queryType({});
  for (const model of visibleModels) {
    const fields = (t: Fields) => ({
      key: t.exposeInt(keyOf(model)),
      ...Object.fromEntries(
        relations(model).flatMap((name) => {
          if (!relationOf(model, name)?.isList) return [[name, t.relation(name, { nullable: true })]];
          const cursor = linkAt(model, name).model === 'DttLibraryEntry' ? 'userId_templateId' : 'id';
          return [
            [name, t.relation(name)],
            [`${name}Count`, t.relationCount(name)],
            [`${name}Page`, t.relatedConnection(name, { cursor, totalCount: true })],
          ];
        }),
      ),
    });
    builder.prismaObject(model, { fields } as never);
    builder.queryField(`${delegateOf(model)}s`, (t) =>
      t.prismaField({
        type: [model] as never,
        resolve: (query: object, _root, _args, { prisma }) =>
          prisma[delegateOf(model)].findMany(query) as never,
      }),
    );
  }
  builder.prismaObject('MirroredAccount', { fields: (t) => ({ id: t.exposeInt('userId') }) });
  return withConventionalFields(builder.toSchema());
}

/** What is selected of a model: each relation as a list, as a number and as a page. */
function selectionOf(model: VisibleModel, depth: number): string {
  if (depth === 0) return 'key';
  const relations = allowedOf(model).map((name) => {
    const link = linkAt(model, name);
    const below = selectionOf(link.model, depth - 1);
    return link.isList
      ? `${name} { ${below} } ${name}Count ${name}Page(first: 100) { totalCount edges { node { key } } }`
      : `${name} { ${below} }`;
  });
  return ['key', ...relations].join(' ');
}

/** The same by the reader: rows that meet a condition, each with its relations. */
async function read(
  viewer: { id: number },
  model: VisibleModel,
  where: object,
  depth: number,
): Promise<Row[]> {
  const columns = Object.fromEntries(
    [keyOf(model), ...relationsOf(model).flatMap((name) => linkAt(model, name).columns)].map((name) => [
      name,
      true,
    ]),
  );
  const found = await database.sql.findMany(model, {
    select: columns,
    where: { AND: [visibleTo(viewer, model), where] },
  });
  // It has the columns that are selected, which are all numbers or null.
  const rows = found as Record<string, number | null>[];
  const shown = rows.map(async (row): Promise<Row> => {
    const key = row[keyOf(model)] ?? 0;
    if (depth === 0) return { key };
    const relations = allowedOf(model).map(async (name) => {
      const {
        model: target,
        isList,
        columns: [column = ''],
        inverse,
      } = linkAt(model, name);
      if (!isList) return [[name, (await read(viewer, target, { id: row[column] }, depth - 1))[0] ?? null]];
      const [there = ''] = linkAt(target, inverse).columns;
      const below = await read(viewer, target, { [there]: key }, depth - 1);
      const edges = below.map(({ key }) => ({ node: { key } }));
      return [
        [name, below],
        [`${name}Count`, below.length],
        [`${name}Page`, { totalCount: below.length, edges }],
      ];
    });
    return { key, ...Object.fromEntries((await Promise.all(relations)).flat()) };
  });
  return Promise.all(shown);
}

interface Row {
  readonly key: number;
  readonly [relation: string]: unknown;
}

function contextOf({ userId }: Account) {
  const viewer = { id: userId, tokenId: undefined, scope: 'read' } as const;
  const clients = { prisma: scopedTo(database.client, viewer), changeTokens: () => expect.fail() };
  return createContext(database.sql, viewer, undefined, clients);
}

/** Lists have no order here. */
const inOrder = (value: unknown): unknown => {
  if (Array.isArray(value))
    return value.map(inOrder).toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
  return typeof value === 'object' && value !== null
    ? Object.fromEntries(Object.entries(value).map(([name, each]) => [name, inOrder(each)]))
    : value;
};

describe('a conventional field for every model and every relation', () => {
  it.each(visibleModels)('shows of %s what the reader shows, to each of two users', async (model) => {
    const schema = build(allowedOf);
    const document = parse(`{ rows: ${delegateOf(model)}s { ${selectionOf(model, 2)} } }`);
    for (const account of [alice, bob]) {
      const { data, errors } = await execute({ schema, document, contextValue: contextOf(account) });
      expect(errors).toBeUndefined();
      const shown = await read({ id: account.userId }, model, {}, 2);
      expect(shown).not.toEqual([]);
      expect(inOrder(data?.rows)).toEqual(inOrder(shown));
    }
  });

  it.each(refused)('fails for %s.%s, and says %s', async (model, name, says) => {
    const schema = build((each) => (each === model ? [name] : []));
    const document = parse(`{ rows: ${delegateOf(model)}s { ${name} { __typename } } }`);
    const { errors = [] } = await execute({ schema, document, contextValue: contextOf(alice) });
    expect(errors.join()).toContain(says);
  });
});

it('a node of another user is as one that does not exist, and a page begins behind rows of the user alone', async () => {
  const builder = new SchemaBuilder<BuilderTypes>({
    ...builderOptions,
    relay: { ...builderOptions.relay, nodeQueryOptions: {} },
  });
  builder.queryType({});
  builder.prismaNode('DttSession', { id: { field: 'id' }, fields: (t) => ({ key: t.exposeInt('id') }) });
  builder.queryField('sessions', (t) =>
    t.prismaConnection({
      type: 'DttSession',
      cursor: 'id',
      resolve: (query, _root, _args, { prisma }) =>
        prisma.dttSession.findMany({ ...query, orderBy: { createdAt: 'desc' } }),
    }),
  );
  const schema = withConventionalFields(builder.toSchema());
  const run = (query: string) => execute({ schema, document: parse(query), contextValue: contextOf(alice) });
  const node = async (id = 0) => {
    const globalId = Buffer.from(`DttSession:${id}`).toString('base64url');
    const { data, errors = [] } = await run(`{ node(id: "${globalId}") { ... on DttSession { key } } }`);
    return [data?.node, errors.map(({ message }) => message)];
  };
  const page = async (args: string) => {
    const { data, errors } = await run(`{ sessions(${args}) { nodes { key } edges { cursor } } }`);
    expect(errors).toBeUndefined();
    // As it was selected.
    return data?.sessions as { nodes: { key: number }[]; edges: { cursor: string }[] };
  };
  const keys = async (args: string) => (await page(args)).nodes.map(({ key }) => key);
  const behind = (id = 0) => `after: "${Buffer.from(`GPC:N:${id}`).toString('base64')}"`;
  expect(await node(alice.dttSessions[0])).toEqual([{ key: alice.dttSessions[0] }, []]);
  expect(await node(bob.dttSessions[0])).toEqual(await node(1_000_000));
  const { edges } = await page('first: 2');
  expect(await keys(`first: 2, after: "${edges[1]?.cursor}"`)).toEqual(alice.dttSessions.slice(2, 4));
  expect(await keys(`last: 2, before: "${edges[1]?.cursor}"`)).toEqual(alice.dttSessions.slice(0, 1));
  expect(await keys('last: 1')).toEqual(alice.dttSessions.slice(-1));
  expect(await keys(behind(alice.dttSessions[3]))).toEqual(alice.dttSessions.slice(4));
  expect(await keys(behind(bob.dttSessions[3]))).toEqual([]);
  const { errors: [error] = [] } = await run('{ sessions(after: "no cursor") { nodes { key } } }');
  expect(clientErrorOf(error).extensions).toEqual({ code: 'BAD_USER_INPUT' });
});

describe('in the schema of the gateway', () => {
  // Other tests of this worker would get that schema.
  afterAll(() => void vi.resetModules());

  /** The modules of the schema, loaded anew with more fields. */
  async function withFields() {
    vi.resetModules();
    const { builder } = await import('../../src/schema/builder.ts');
    builder.queryFields((t) => ({
      sessionsByPrisma: t.prismaField({
        type: ['DttSession'],
        nullable: true,
        resolve: (query, _root, _args, { prisma }) =>
          prisma.dttSession.findMany({ ...query, orderBy: { createdAt: 'desc' } }),
      }),
      templatesByPrisma: t.prismaConnection({
        type: 'DttTemplate',
        cursor: 'id',
        totalCount: (_root, _args, { prisma }) => prisma.dttTemplate.count(),
        resolve: (query, _root, _args, { prisma }) =>
          prisma.dttTemplate.findMany({ ...query, orderBy: [{ createdDate: 'desc' }, { id: 'desc' }] }),
      }),
    }));
    builder.prismaObjectField('User', 'tokens', (t) => t.relation('tokens', { nullable: true }));
    builder.prismaObjectField('DttTemplate', 'users', (t) => t.relationCount('libraryEntries'));
    const { schema } = await import('../../src/schema/schema.ts');
    const { prepare } = await import('../../src/schema/operation.ts');
    const { createSql } = await import('../../src/database/reader/sql.ts');
    const sql = createSql(database.pool);
    return async (query: string) => {
      const operation = prepare(parse(query), { schema }) ?? expect.fail('there is none');
      // The first run is by graphql-js, and the second by compiled code.
      const run = () => operation.run({}, { ...contextOf(alice), sql });
      const result = await run();
      expect(result.errors).toBeUndefined();
      expect(await run()).toEqual(result);
      // As JSON, since graphql-js makes objects without a prototype.
      return JSON.parse(JSON.stringify(result.data));
    };
  }

  it('such fields and those of the reader may have each other below them', async () => {
    const run = await withFields();
    const session = `name createdAt owner { username } template { name isActive isImported segments { type } users }
      segments { order type } trainer { databaseId }`;
    const { sessionsByPrisma, dttSessions } = await run(
      `{ sessionsByPrisma { ${session} } dttSessions { nodes { ${session} } } }`,
    );
    expect(sessionsByPrisma).toEqual(dttSessions.nodes);
    const template =
      'name isActive isImported segments { type } users sessions { nodes { name } totalCount }';
    const { templatesByPrisma, dttTemplates, viewer } = await run(
      `{ templatesByPrisma { totalCount nodes { ${template} } } dttTemplates { totalCount nodes { ${template} } }
        viewer { username tokens { name } dttDevices { nodes { databaseId } } } }`,
    );
    expect(templatesByPrisma).toEqual(dttTemplates);
    for (const { sessions } of dttTemplates.nodes) expect(sessions.totalCount).toBe(sessions.nodes.length);
    expect(viewer).toEqual({
      username: 'alice',
      tokens: [{ name: 'test' }],
      dttDevices: { nodes: alice.dttDevices.map((databaseId) => ({ databaseId })) },
    });
  });
});
