/** The database is away while a mirror reads details: what clients get, and what the log says. */

import { tmpdir } from 'node:os';
import { expect, it, onTestFinished } from 'vitest';
import { openDatabase } from '../../../../src/database/database.ts';
import { completeReads } from '../../../../src/extensions/upstream/mirror/completeReads.ts';
import type { AccountElsewhere } from '../../../../src/schema/context.ts';
import { createAccount } from '../../../support/accounts.ts';
import { graphqlOnce, openTestDatabase, openTestGateway, withClient } from '../../../support/gateway.ts';
import { openTcpProxy } from '../../../support/tcpProxy.ts';
import { createMemoryUpstream, upstreamOf } from '../support/memoryUpstream.ts';
import { extensionsWith, stillMirror } from '../support/mirrorService.ts';

it('the fields get the error of a request that reads here, and the log the same line', async () => {
  const database = await openTestDatabase();
  const alice = await createAccount(database.client, 'alice');
  await database.client.dttSession.updateMany({ data: { detailsPending: true } });
  const proxy = await openTcpProxy(database);
  const opened = withClient(await openDatabase({ DATABASE_URL: proxy.url, DATA_DIR: tmpdir() }));
  const gateway = await openTestGateway(opened, {
    logLevel: 'info',
    extensions: extensionsWith((_, { database: { pool } }) => {
      const mirror = stillMirror(pool, upstreamOf(createMemoryUpstream(), alice.userId));
      async function fetchDetails(): Promise<void> {
        await proxy.refuse();
        await pool.query('SELECT');
      }
      const wrapSql: AccountElsewhere['wrapSql'] = (viewer, sql, watch) =>
        completeReads(viewer, sql, watch, fetchDetails);
      return { elsewhere: { ...mirror.elsewhere, wrapSql } };
    }),
  });
  onTestFinished(async () => {
    await gateway.close();
    await proxy.close();
    await database.close();
  });
  const message = 'The database cannot be reached; try again';
  const extensions = { code: 'SERVICE_UNAVAILABLE', retryAfter: 1 };
  const found = await graphqlOnce(
    gateway,
    alice.token,
    '{ dttSessions { nodes { segments { repsMeasured } } } }',
  );
  expect(found).toMatchObject({ status: 503, errors: [{ message, extensions }] });
  expect(found.headers.get('Retry-After')).toBe('1');
  expect(gateway.log.filter((line) => JSON.parse(line).msg.startsWith('the database'))).toHaveLength(1);
  await proxy.accept();
});
