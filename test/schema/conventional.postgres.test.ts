/**
 * Fields as Pothos' documentation writes them: a schema with one for every model and every relation shows each user what the reader
 * shows, and a field that Prisma cannot restrict fails when the schema is built.
 */

import SchemaBuilder from '@pothos/core';
import { execute, type GraphQLSchema, parse } from 'graphql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { conditionOf, linkOf, linksOf, type VisibleModel, visibleModels } from '../../src/database/models.ts';
import { delegateOf, scopedTo } from '../../src/database/scope/scope.ts';
import { type BuilderTypes, builderOptions } from '../../src/schema/builder.ts';
import { createContext } from '../../src/schema/context.ts';
import { type Account, createAccount, importTemplate } from '../support/accounts.ts';
import { openTestDatabase, type TestDatabase } from '../support/gateway.ts';

let database: TestDatabase;
let alice: Account;
let bob: Account;
beforeAll(async () => {
  database = await openTestDatabase();
  const { client } = database;
  alice = await createAccount(client, 'alice');
  bob = await createAccount(client, 'bob');
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
});
afterAll(() => database?.close());

/** Relations to a row that the viewer may not see, for all that Prisma and the table of models can say. */
const refused: Readonly<Partial<Record<VisibleModel, readonly string[]>>> = {
  User: ['activeTemplate', 'activeEntry', 'mirrored'],
  DttTemplate: ['owner'],
  DttLibraryEntry: ['template'],
  DttSession: ['template'],
};
const relationsOf = (model: VisibleModel) => linksOf(model).filter((name) => !refused[model]?.includes(name));
const linkAt = (model: VisibleModel, name: string) => {
  const link = linkOf(model, name) ?? expect.fail('there is no such relation');
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
          if (!linkOf(model, name)?.isList) return [[name, t.relation(name, { nullable: true })]];
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
  return builder.toSchema();
}

/** What is selected of a model: each relation as a list, as a number and as a page. */
function selectionOf(model: VisibleModel, depth: number): string {
  if (depth === 0) return 'key';
  const relations = relationsOf(model).map((name) => {
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
    [keyOf(model), ...linksOf(model).flatMap((name) => linkAt(model, name).columns)].map((name) => [
      name,
      true,
    ]),
  );
  const found = await database.sql.findMany(model, {
    select: columns,
    where: { AND: [conditionOf(model, viewer), where] },
  });
  // It has the columns that are selected, which are all numbers or null.
  const rows = found as Record<string, number | null>[];
  const shown = rows.map(async (row): Promise<Row> => {
    const key = row[keyOf(model)] ?? 0;
    if (depth === 0) return { key };
    const relations = relationsOf(model).map(async (name) => {
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
    const schema = build(relationsOf);
    const document = parse(`{ rows: ${delegateOf(model)}s { ${selectionOf(model, 2)} } }`);
    for (const { userId } of [alice, bob]) {
      const viewer = { id: userId, tokenId: undefined, scope: 'read' } as const;
      const clients = { prisma: scopedTo(database.client, viewer), changeTokens: () => expect.fail() };
      const contextValue = createContext(database.sql, viewer, undefined, clients);
      const { data, errors } = await execute({ schema, document, contextValue });
      expect(errors).toBeUndefined();
      const shown = await read(viewer, model, {}, 2);
      expect(shown).not.toEqual([]);
      expect(inOrder(data?.rows)).toEqual(inOrder(shown));
    }
  });

  it.each(Object.entries(refused).flatMap(([model, names]) => names.map((name) => [model, name])))(
    'fails for %s.%s when the schema is built, and says what to write instead',
    (model, name) => {
      const [columns] = [linkOf(model as VisibleModel, name ?? '')?.columns];
      const message = columns?.length
        ? `toOne(${linkOf(model as VisibleModel, name ?? '')?.model}, '${columns[0]}')`
        : 'who may see';
      expect(() => build((each) => (each === model ? [name ?? ''] : []))).toThrow(message);
    },
  );
});
