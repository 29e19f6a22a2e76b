/** What a mirror writes and reads is the same on either engine; model.slow.postgres.test.ts has the rest. */

import { afterAll, expect, it } from 'vitest';
import { createUpstream } from '../../../../src/extensions/upstream/client/upstream.ts';
import { countChanges, type SyncOptions } from '../../../../src/extensions/upstream/mirror/sync.ts';
import { databaseWith } from '../../../support/setUp.ts';
import { compare } from '../support/compare.ts';
import { run as runOnce } from '../support/memoryUpstream.ts';
import { createRandom } from '../support/standIn/random.ts';
import { createStandIn } from '../support/standIn/standIn.ts';
import { changeSomething } from './model/changes.ts';

const token = 'token-of-alice';
const size = { sessions: 24 };
const service = await createStandIn({
  rate: 100_000,
  accounts: [
    { id: 1, username: 'alice', tokens: [token], size, locked: true },
    { id: 2, username: 'bob', tokens: [] },
  ],
});
const { database } = await databaseWith();
afterAll(service.stop);
const upstream = createUpstream({ base: service.base, token });

const run = (options: Partial<SyncOptions> = {}) => runOnce({ pool: database.pool, upstream, ...options });

it('a mirror has what the upstream has after a run, and is not changed by a second one, which takes few requests', async () => {
  const report = await run();
  expect(report.requests).toBe(service.count());
  expect(
    [...report.countsByKind].map(([name, counts]) => [name, ...Object.values(counts)].join(' ')),
  ).toEqual([
    'user 1 0 0 0',
    'DTT devices 2 2 0 0',
    'DTT templates 4 4 0 0',
    'LKBX devices 1 1 0 0',
    'lock templates 2 2 0 0',
    'lock sessions 3 3 0 0',
    'OSSM devices 1 1 0 0',
    'DTT sessions 24 24 0 0',
    'details of DTT templates 4 4 0 0',
    'details of DTT sessions 24 24 0 0',
  ]);
  expect(await compare(service, database, 1, token)).toEqual([]);
  // Another request of the same client, which does not belong to the run.
  await upstream.get('/users/me');
  service.forgetRequests();
  const second = await run();
  expect([countChanges(second), second.requests]).toEqual([0, service.count()]);
  expect(second.requests).toBeLessThanOrEqual(12);
});

it('a mirror has what is added, changed and removed upstream after the next full run', async () => {
  const random = createRandom(7);
  for (let version = 1; version <= 60; version++) changeSomething(service, random, version);
  // A database has no other account here from which a name could be taken.
  service.account(1).user.username = 'alice';
  expect((await run({ full: true })).notes).toEqual([]);
  expect(await compare(service, database, 1, token)).toEqual([]);
  expect(countChanges(await run())).toBe(0);
});
