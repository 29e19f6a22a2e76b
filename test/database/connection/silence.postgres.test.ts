/** Connections whose server stops responding. A proxy stands between, and stalls. */

import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, type TestContext } from 'vitest';
import { endWhenSilent } from '../../../src/database/connection/silence.ts';
import { isUnresponsive } from '../../../src/database/session.ts';
import { openTestDatabase, type TestDatabase } from '../../support/gateway.ts';
import { openTcpProxy } from '../../support/tcpProxy.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await openTestDatabase();
});
afterAll(() => database?.close());

/** In milliseconds. */
const longest = 600;

async function openClient({ onTestFinished }: TestContext) {
  const proxy = await openTcpProxy(database);
  onTestFinished(proxy.close);
  const client = new pg.Client({ connectionString: proxy.url });
  await client.connect();
  const lost: Error[] = [];
  client.on('error', (error) => lost.push(error));
  endWhenSilent(client, longest);
  return { proxy, client, lost };
}

describe('a connection whose silence is limited', () => {
  it.concurrent('is ended, and its statement fails, when the server does not respond', async (test) => {
    const { proxy, client, lost } = await openClient(test);
    // The timer has fired once before, in vain.
    await sleep(1.5 * longest);
    await client.query('SELECT 1');
    proxy.hold();
    const began = performance.now();
    const failure = await client.query('SELECT 2').catch((error: unknown) => error);
    test.expect(isUnresponsive(failure)).toBe(true);
    test.expect(performance.now() - began).toBeGreaterThan(longest - 10);
    test.expect(lost).toEqual([failure]);
    test.expect(client.connection.stream.destroyed).toBe(true);
  });

  it.concurrent('stays open while no statement runs, also in a transaction', async (test) => {
    const { client, lost } = await openClient(test);
    await sleep(2 * longest);
    await client.query('BEGIN');
    await sleep(2 * longest);
    test.expect((await client.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
    test.expect(lost).toEqual([]);
    await client.end();
  });

  it.concurrent('gives each statement the whole time, whenever the one before was sent', async (test) => {
    const { client, lost } = await openClient(test);
    for (let run = 0; run < 3; run++) {
      await sleep(0.6 * longest);
      await client.query('SELECT pg_sleep($1)', [(0.6 * longest) / 1000]);
    }
    test.expect(lost).toEqual([]);
    await client.end();
  });
});

describe('a pool whose server does not respond', () => {
  it('fails the statement, and opens another connection for the next one', async (test) => {
    const proxy = await openTcpProxy(database);
    test.onTestFinished(proxy.close);
    const pool = new pg.Pool({ connectionString: proxy.url, max: 1 });
    test.onTestFinished(() => pool.end());
    pool.on('connect', (client) => endWhenSilent(client, longest));
    await pool.query('SELECT 1');
    proxy.hold();
    await expect(pool.query('SELECT 2')).rejects.toThrow('Query read timeout');
    expect(pool.totalCount).toBe(0);
    proxy.release();
    expect((await pool.query('SELECT 3 AS three')).rows).toEqual([{ three: 3 }]);
  });
});
