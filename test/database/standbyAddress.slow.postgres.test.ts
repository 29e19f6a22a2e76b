/** DATABASE_URL leads to a standby: at the start, and for a while during a failover. */

import { afterAll, expect, it, onTestFinished } from 'vitest';
import { isAway, readOnlyServer } from '../../src/database/connection.ts';
import { startCluster } from '../support/cluster.ts';
import { openAt } from '../support/gateway.ts';
import { pgbouncerVersion, startPgBouncer } from '../support/pgbouncer.ts';

const bounds = { connections: 5, statement: 5_000 };

const cluster = await startCluster(1);
await cluster.createDatabase('app');
await (await openAt(`${cluster.primary.url}/app`)).close();
await cluster.isReplayed();
const standby = cluster.standbys[0] ?? expect.fail('there is no standby');
afterAll(cluster.stop);

it('a start says that it needs the primary', async () => {
  const DATABASE_URL = `${standby.url}/app`;
  await expect(openAt(DATABASE_URL)).rejects.toThrow(
    `DATABASE_URL is "${DATABASE_URL.replace(':postgres@', ':***@')}", but ${readOnlyServer}`,
  );
  await expect(openAt(`${cluster.primary.url}/app`, bounds, DATABASE_URL)).rejects.toThrow(
    'leads to another server than DATABASE_URL, or a copy of it',
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
    const opened = await openAt(pooler?.url ?? line.url, bounds);
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
    line.leadTo(standby.port);
    const readOnly = expect.stringMatching(/^away: .*(standby|read-only)/);
    await expect.poll(outcomes, { timeout: 15_000 }).toEqual([readOnly, readOnly]);
    // Those that lead to the standby go on, but PgBouncer's would be used for as long as it likes.
    if (pooler) line.leadTo(cluster.primary.port);
    else line.turnTo(cluster.primary.port);
    await expect.poll(outcomes, { timeout: 15_000 }).toEqual(['done', 'done']);
    for (let round = 0; round < 10; round++) expect(await outcomes()).toEqual(['done', 'done']);
  },
);
