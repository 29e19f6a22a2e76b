/**
 * Filtered and sorted lists of a user with 100,000 sessions, of a million in all: how long the first page, a page in the middle and
 * the count take, compared with the default list.
 */

import { median } from './compare.ts';
import type { ServerProcess } from './processes.ts';
import type { Table } from './table.ts';
import { type Json, tokenOf } from './workloads.ts';

/** The user of `filters.sql`. */
const user = 2005;

const order = (field: string, direction: string) => ({ orderBy: [{ field, direction }] });

const lists: readonly (readonly [title: string, args: object])[] = [
  ['default list', {}],
  ['createdAt: a day', { where: { createdAt: { gte: '2024-06-01T00:00:00Z', lt: '2024-06-02T00:00:00Z' } } }],
  ['createdAt: half of all', { where: { createdAt: { lt: '2024-09-01T00:00:00Z' } } }],
  ['createdAt: one instant', { where: { createdAt: { eq: '2024-01-01T00:07:00Z' } } }],
  ['databaseId: three', { where: { databaseId: { in: [10_000_001, 10_050_000, 10_099_999] } } }],
  ['bubbleId: one', { where: { bubbleId: { eq: 'session-2005-500' } } }],
  ['passed: a fifth', { where: { passed: { eq: false } } }],
  ['passed: unknown', { where: { passed: { isNull: true } } }],
  ['name: one', { where: { name: { eq: 'Session 50001' } } }],
  ['name: contains, a few', { where: { name: { contains: 'ION 9999' } } }],
  ['name: contains, none', { where: { name: { contains: 'nobody' } } }],
  ['name: startsWith, many', { where: { name: { startsWith: 'session 1' } } }],
  ['trainerId: a third', { where: { trainerId: { eq: 20_001 } } }],
  ['templateId: a sixth', { where: { templateId: { eq: 20_001 } } }],
  ['templateId: none', { where: { templateId: { isNull: true } } }],
  ['template: by its name', { where: { template: { name: { eq: 'Program 3' } } } }],
  ['template: by a name that none has', { where: { template: { name: { eq: 'Program 9' } } } }],
  ['trainer: by its visit', { where: { trainer: { lastVisitedAt: { gt: '2026-01-01T02:30:00Z' } } } }],
  ['or: two ends', { where: { or: [{ name: { eq: 'Session 1' } }, { name: { eq: 'Session 99999' } }] } }],
  ['not: contains, all', { where: { not: { name: { contains: 'nobody' } } } }],
  ['not: template', { where: { not: { template: {} } } }],
  ['by createdAt, oldest first', order('CREATED_AT', 'ASC')],
  ['by name', order('NAME', 'ASC')],
  ['by passed', order('PASSED', 'DESC')],
  ['by three', { orderBy: ['PASSED', 'NAME', 'CREATED_AT'].map((field) => ({ field, direction: 'ASC' })) }],
  ['passed, by name', { where: { passed: { eq: false } }, ...order('NAME', 'ASC') }],
];

const variables = '$where: DttSessionFilter, $orderBy: [DttSessionOrder!], $after: String, $offset: Int';
const page = `query (${variables}) { dttSessions(where: $where, orderBy: $orderBy, after: $after, offset: $offset) {
  nodes { databaseId createdAt passed name } pageInfo { endCursor } } }`;
const count = `query (${variables}) { dttSessions(first: 1, where: $where, orderBy: $orderBy, after: $after, offset: $offset) {
  totalCount } }`;

/** @param rounds how often each query is sent, one after the other. The result is the median. */
export async function measureFilters({ url }: ServerProcess, rounds: number): Promise<Table> {
  async function ask(query: string, args: object): Promise<{ time: number; data: Json }> {
    const began = performance.now();
    const response = await fetch(`${url}/graphql`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${tokenOf(user)}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ query, variables: args }),
    });
    const { data, errors }: Json = await response.json();
    if (errors) throw new Error(`${JSON.stringify(args)}: ${JSON.stringify(errors)}`);
    return { time: performance.now() - began, data: data.dttSessions };
  }
  async function timeOf(query: string, args: object): Promise<number> {
    const times: number[] = [];
    for (let round = 0; round < rounds; round++) times.push((await ask(query, args)).time);
    return median(times);
  }

  const rows: string[][] = [];
  let usual: number[] | undefined;
  // The first two executions parse and compile the operation, and are not counted.
  for (const query of [page, count]) await timeOf(query, {});
  for (const [title, args] of lists) {
    const total: number = (await ask(count, args)).data.totalCount;
    const middle = await ask(page, { ...args, offset: Math.max(0, Math.floor(total / 2) - 50) });
    const times = [
      await timeOf(page, args),
      await timeOf(page, { ...args, after: middle.data.pageInfo.endCursor }),
      await timeOf(count, args),
    ];
    usual ??= times;
    const ratios = times.map(
      (time, index) => `${time.toFixed(1)} (${(time / (usual?.[index] ?? time)).toFixed(1)})`,
    );
    rows.push([title, total.toLocaleString('en'), ...ratios]);
  }
  return {
    title: 'ms for 50 of 100,000 sessions of a user, of a million in all, and the ratio to the default list',
    rows: [['', 'found', 'first page', 'in the middle', 'totalCount'], ...rows],
  };
}
