/** DATABASE_URL leads to a standby: at the start, and for a while during a failover. */

import { tmpdir } from 'node:os';
import { afterAll, expect, it, onTestFinished } from 'vitest';
import { isAway, readOnlyServer } from '../../src/database/connection.ts';
import { openDatabase } from '../../src/database/database.ts';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { pgbouncerVersion, startPgBouncer } from '../support/pgbouncer.ts';

const bounds = { connections: 5, statement: 5_000 };

const cluster = await startCluster(1);
await cluster.createDatabase('app');
const opened = await openDatabase({ DATABASE_URL: `${cluster.primary.url}/app`, DATA_DIR: tmpdir() });
await opened.close();
await cluster.isReplayed();
afterAll(() => cluster?.stop());

const standbyOf = ({ standbys: [first] }: Cluster) => {
  if (!first) throw new Error('there is no standby');
  return first;
};

it('a start says that it needs the primary', async () => {
  const DATABASE_URL = `${standbyOf(cluster).url}/app`;
  await expect(openDatabase({ DATABASE_URL, DATA_DIR: tmpdir() })).rejects.toThrow(
    `DATABASE_URL is "${DATABASE_URL.replace(':postgres@', ':***@')}", but ${readOnlyServer}`,
  );
});

it.for(['nothing', 'PgBouncer'])(
  'reads and writes are those of a database that is away, and no connection stays in the pool: behind %s',
  async (behind, { skip }) => {
    skip(behind === 'PgBouncer' && pgbouncerVersion === undefined, 'PgBouncer is not installed');
    const line = await cluster.primary.openTcpProxy('app');
    const pooler =
      behind === 'nothing'
        ? undefined
        : await startPgBouncer(line.url, 'transaction', ['server_login_retry = 0']);
    if (pooler) onTestFinished(() => pooler.close());
    const opened = await openDatabase({ DATABASE_URL: pooler?.url ?? line.url, DATA_DIR: tmpdir() }, bounds);
    onTestFinished(() => opened.close());
    const statements = ['SELECT 1 AS one', 'CREATE TABLE IF NOT EXISTS written (id int)'];
    const outcomes = () =>
      Promise.all(
        statements.map((text) =>
          opened.sql.run(text, []).then(
            () => 'done',
            (error) => `${isAway(error) ? 'away' : 'fault'}: ${error.message}`,
          ),
        ),
      );
    expect(await outcomes()).toEqual(['done', 'done']);
    line.leadTo(standbyOf(cluster).port);
    const readOnly = expect.stringMatching(/^away: .*(standby|read-only)/);
    await expect.poll(outcomes, { timeout: 15_000 }).toEqual([readOnly, readOnly]);
    // Those that lead to the standby go on, but PgBouncer's would be used for as long as it likes.
    if (pooler) line.leadTo(cluster.primary.port);
    else line.turnTo(cluster.primary.port);
    await expect.poll(outcomes, { timeout: 15_000 }).toEqual(['done', 'done']);
    for (let round = 0; round < 10; round++) expect(await outcomes()).toEqual(['done', 'done']);
  },
);
