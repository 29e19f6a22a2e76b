import { expect, it, vi } from 'vitest';
import type { Batch, NamedStatement } from '../../src/database/reader/sql.ts';
import { graphqlOnce } from '../support/gateway.ts';
import { gatewayWith } from '../support/setUp.ts';

/** A node of a plan, as EXPLAIN (FORMAT JSON) writes it. */
interface PlanNode {
  'Node Type': string;
  'Relation Name'?: string;
  'Index Name'?: string;
  Plans?: PlanNode[];
}

/** Many rows of several owners, so that the planner prefers an index. Some times are null. */
const rows = 4_000;
const time = "CASE WHEN i % 10 > 0 THEN timestamptz '2026-01-01' + i * interval '1 minute' END";
const owner = '(SELECT id FROM "User" ORDER BY id OFFSET i % (SELECT count(*) FROM "User") LIMIT 1)';
/** Inserts rows, numbered i, into the columns, each with its expression. */
function seed(table: string, columns: Record<string, string>): string {
  const names = Object.keys(columns).map((name) => `"${name}"`);
  return `INSERT INTO "${table}" (${names}) SELECT ${Object.values(columns)} FROM generate_series(1, ${rows}) i`;
}

const one = (table: string) => `(SELECT id FROM "${table}" ORDER BY id OFFSET i % 40 LIMIT 1)`;
const device = { bubbleId: 'i::text', ownerId: owner, lastVisited: time };
const created = `coalesce(${time}, now())`;
const seeds = [
  `INSERT INTO "User" (username) SELECT 'user ' || i FROM generate_series(1, 19) i`,
  seed('DttDevice', device),
  seed('LkbxDevice', device),
  seed('OssmDevice', { ...device, chip: "'x'" }),
  seed('DttTemplate', {
    bubbleId: 'i::text',
    ownerId: owner,
    name: "'x'",
    targetDepth: '1',
    targetWindow: '1',
    createdDate: created,
  }),
  seed('LockTemplate', { ownerId: owner, name: "'x'", duration: '1', createdAt: created }),
  seed('LockSession', {
    bubbleId: 'i::text',
    publicId: 'i::text',
    ownerId: owner,
    lockState: "'completed'",
    duration: '1',
    startDate: created,
  }),
  seed('DttSession', {
    bubbleId: 'i::text',
    ownerId: owner,
    goneTrainerId: 'i',
    templateId: one('DttTemplate'),
    createdAt: created,
  }),
  'ANALYZE',
];

const {
  gateway,
  alice: { token },
} = await gatewayWith(['alice']);
for (const seed of seeds)
  await gateway.database.pool.query(
    seed.replaceAll('SELECT i,', 'SELECT i::text,').replaceAll(', i,', ', i::text,'),
  );

/** The statements with which the gateway reads for a query. */
async function statementsOf(query: string): Promise<NamedStatement[]> {
  const spy = vi.spyOn(gateway.database.pool, 'query');
  const { errors } = await graphqlOnce(gateway, token, query);
  expect(errors).toBeUndefined();
  // The overloads of `query` hide the type of the argument.
  const batches = spy.mock.calls.map(([batch]) => batch as unknown as Batch);
  spy.mockRestore();
  return batches.flatMap(({ statements }) => statements);
}

function nodesOf(node: PlanNode): PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(nodesOf)];
}

/** The plan of the one statement that reads rows of the table in order. */
async function planOf(field: string, table: string): Promise<PlanNode[]> {
  const statements = await statementsOf(`{ ${field}(first: 10) { nodes { databaseId } } }`);
  const lists = statements.filter(({ text }) => text.includes(`"${table}"`) && text.includes('ORDER BY'));
  expect(lists).toHaveLength(1);
  const [list] = lists;
  const explained = await gateway.database.pool.query(`EXPLAIN (FORMAT JSON) ${list?.text}`, [
    ...(list?.values ?? []),
  ]);
  return nodesOf(explained.rows[0]['QUERY PLAN'][0].Plan);
}

const typesOf = (nodes: PlanNode[]) => nodes.map((node) => node['Node Type']);

it.each([
  ['dttDevices', 'DttDevice'],
  ['dttSessions', 'DttSession'],
  ['lkbxDevices', 'LkbxDevice'],
  ['lockTemplates', 'LockTemplate'],
  ['lockSessions', 'LockSession'],
  ['ossmDevices', 'OssmDevice'],
])('a page of a list of %s is read from an index in order', async (field, table) => {
  const nodes = await planOf(field, table);
  expect(typesOf(nodes)).not.toContain('Sort');
  expect(typesOf(nodes)).not.toContain('Incremental Sort');
  const scans = nodes.filter((node) => node['Relation Name'] === table);
  expect(typesOf(scans)).toEqual([expect.stringMatching(/^Index (Only )?Scan$/)]);
  expect(scans[0]?.['Index Name']).toMatch(new RegExp(`^${table}_ownerId_\\w+_id_idx$`));
});
