import { expect, it, vi } from 'vitest';
import { listedTypes, models } from '../../src/database/models.ts';
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

const {
  gateway,
  alice: { token },
} = await gatewayWith(['alice']);

/** Many rows of several owners, so that the planner prefers an index. Some times are null. */
const copies = 4_000;
const { pool } = gateway.database;
await pool.query(`INSERT INTO "User" (username) SELECT 'user ' || i FROM generate_series(1, 19) i`);
for (const table of listedTypes) {
  const { order, isDevice } = { isDevice: false, ...models[table] };
  const time = `timestamptz '2026-01-01' + i * interval '1 minute'`;
  const changed = {
    id: '1000000 + i',
    ...{ bubbleId: 'i', publicId: 'i', isActive: 'false', lockState: "'completed'" },
    ownerId: '(SELECT id FROM "User" ORDER BY id OFFSET i % 20 LIMIT 1)',
    ...{ trainerId: 'NULL', goneTrainerId: '1', templateId: 'NULL' },
    [order]: isDevice ? `CASE WHEN i % 10 > 0 THEN ${time} END` : time,
  };
  const pairs = Object.entries(changed).map(([name, value]) => `'${name}', ${value}`);
  await pool.query(
    `INSERT INTO "${table}" SELECT (jsonb_populate_record(t, jsonb_build_object(${pairs}))).*
     FROM generate_series(1, ${copies}) i, "${table}" t WHERE t.id = (SELECT min(id) FROM "${table}")`,
  );
}
await pool.query('ANALYZE');

/** The statements with which the gateway reads for a query. */
async function statementsOf(query: string): Promise<NamedStatement[]> {
  const spy = vi.spyOn(pool, 'query');
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
  const explained = await pool.query(`EXPLAIN (FORMAT JSON) ${list?.text}`, [...(list?.values ?? [])]);
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
