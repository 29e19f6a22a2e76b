/** What runs read, after random changes of two accounts. model.slow.postgres.test.ts has the same for two gateways whose upstream fails at times. */

import { afterAll, expect, it } from 'vitest';
import { createUpstream } from '../../../../src/extensions/upstream/client/upstream.ts';
import { countChanges, type SyncOptions } from '../../../../src/extensions/upstream/mirror/sync.ts';
import { databaseWith } from '../../../support/setUp.ts';
import { compare } from '../support/compare.ts';
import { run as runOnce } from '../support/memoryUpstream.ts';
import { createRandom } from '../support/standIn/random.ts';
import { createStandIn } from '../support/standIn/standIn.ts';
import { changeSomething } from './model/changes.ts';

const accounts = [
  { id: 1, username: 'alice', tokens: ['token-of-alice'], size: { sessions: 24 }, locked: true },
  { id: 2, username: 'bob', tokens: ['token-of-bob'], size: { sessions: 5 } },
];
const service = await createStandIn({ rate: 100_000, accounts });
const { database } = await databaseWith();
const { pool } = database;
afterAll(service.stop);
const [alice = '', bob = ''] = accounts.flatMap(({ tokens }) => tokens);
const upstreamOf = (token: string) => createUpstream({ base: service.base, token });
const upstream = upstreamOf(alice);

const run = (options: Partial<SyncOptions> = {}) => runOnce({ pool, upstream, ...options });

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
  expect(await compare(service, database, 1, alice)).toEqual([]);
  // Another request of the same client, which does not belong to the run.
  await upstream.get('/users/me');
  service.forgetRequests();
  const second = await run();
  expect([countChanges(second), second.requests]).toEqual([0, service.count()]);
  expect(second.requests).toBeLessThanOrEqual(12);
});

it('a mirror of two accounts has what is added, changed, removed and given away upstream after the next runs, full or not', async () => {
  const random = createRandom(7);
  for (let version = 1; version <= 80; version++) {
    changeSomething(service, random, version);
    if (version % 20 > 0) continue;
    // Each once: another run would repair what one has done to the other.
    for (const token of [alice, bob])
      expect((await run({ upstream: upstreamOf(token), full: version % 40 === 0 })).notes).toEqual([]);
    expect(await compare(service, database, 1, alice)).toEqual([]);
    expect(await compare(service, database, 2, bob)).toEqual([]);
    expect(countChanges(await run())).toBe(0);
  }
});
