/** A gateway that refreshes a mirror with `UPSTREAM_TOKEN`, and what it reports and logs about that. */

import { expect, it, onTestFinished, vi } from 'vitest';
import { createToken } from '../../../../src/auth/tokens.ts';
import { openGateway } from '../../../../src/server/gateway.ts';
import { freePort } from '../../../support/freePort.ts';
import { rest } from '../../../support/gateway.ts';
import { readConfig } from '../../../support/settings.ts';
import { activate, arrive, ask, openForEachTest } from '../support/frontedService.ts';
import { faults } from '../support/standIn/faults.ts';
import { failure, success } from '../support/standIn/reads.ts';

const alice = 'token-of-alice';
const open = openForEachTest();
const withToken = { settings: { UPSTREAM_TOKEN: alice } };
const probe = async ({ url }: { url: string }) => (await fetch(`${url}/readyz`)).text();

it('a gateway mirrors the account instead of loading the demo account, and refreshes it at each interval', async () => {
  const { service, database } = await open();
  for (const device of service.account(1).lkbxDevices.values()) Object.assign(device, { hueShift: 'x' });
  service.misbehave({ instead: () => failure(404, 'Not found') }, { path: /^\/users\/me$/ });
  const gateway = await openGateway(
    readConfig({
      PORT: '0',
      DATABASE_URL: String(database.pool.options.connectionString),
      LOG_LEVEL: 'silent',
      // With a slash at the end, it is still the same upstream.
      UPSTREAM_URL: `${service.base}/`,
      UPSTREAM_TOKEN: alice,
      UPSTREAM_RATE: '0',
      UPSTREAM_INTERVAL: '1',
    }),
  );
  onTestFinished(() => gateway.close());
  expect(gateway.shownToken).toBeUndefined();
  await expect
    .poll(() => probe(gateway))
    .toMatch(/last success 2\S+Z, last error none, 1 records left out\n$/);
  service.behave();
  const { token } = await createToken(database.pool, 'alice', 'test');
  const times: number[] = [];
  service.misbehave(
    {
      after(reply) {
        times.push(performance.now());
        return reply;
      },
    },
    { path: /^\/dtt$/ },
  );
  service.account(1).user.profileTitle = 'Changed';
  const title = async () =>
    (await ask(gateway, token, '{ viewer { profileTitle } }')).body.data.viewer.profileTitle;
  await expect.poll(title).toBe('Changed');
  await expect.poll(() => times.length).toBeGreaterThan(2);
  // A request may be late, and the next one not.
  for (const [index, time] of times.slice(1).entries())
    expect(time - (times[index] ?? 0)).toBeGreaterThan(200);
});

it('the first requests wait for the check of the token, instead of being told that the upstream is unusable', async () => {
  const { gateway, service, database, openAnother } = await open(withToken);
  await expect.poll(() => database.client.mirroredAccount.count()).toBe(1);
  const { token } = await createToken(database.pool, 'alice', 'test');
  await arrive(gateway, token);
  service.misbehave(faults.slow(500), { path: /^\/users\/me$/ });
  const another = await openAnother();
  const [{ body }, { status }] = await Promise.all([
    activate(another, token, 2),
    rest(another, token, '/dtt'),
  ]);
  expect(body).toMatchObject({ data: { activateTemplate: { template: { databaseId: 2 } } } });
  expect(status).toBe(200);
});

it('the metrics count the accounts, the requests about them, and the records that are left out', async () => {
  const port = await freePort();
  const { gateway, service } = await open({ settings: { METRICS_PORT: String(port) } });
  service.misbehave({ instead: () => success([{ id: 'x' }]) }, { path: /^\/dtt$/, account: 1 });
  await arrive(gateway, alice);
  await arrive(gateway, 'token-of-bob');
  await vi.waitFor(async () => {
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    expect(text.match(/^dovetail_(mirror|upstream)_.*$/gm)).toEqual([
      'dovetail_mirror_accounts 2',
      'dovetail_mirror_records_skipped 1',
      `dovetail_upstream_requests_total ${service.count()}`,
    ]);
  }, 20_000);
});

it('a gateway closes at once in the middle of a run', async () => {
  const { service, openAnother } = await open({ timing: { timeout: 60_000, retries: 0 } });
  service.misbehave(faults.hang);
  const gateway = await openAnother({ UPSTREAM_TOKEN: alice });
  await expect.poll(() => service.count()).toBeGreaterThan(0);
  const start = performance.now();
  await gateway.close();
  expect(performance.now() - start).toBeLessThan(10_000);
});

const failedAt = (route: string, status: number) => ({
  ...{ method: 'GET', route, status },
  failure: `responded with ${status}`,
});
it.each([
  ['rejects the token', /./, 401, { failure: 'rejected the token' }],
  ['rejects a list', /^\/dtt\/sessions$/, 403, failedAt('/dtt/sessions', 403)],
  ['fails at a record', /^\/dtt\/sessions\/\d+$/, 503, failedAt('/dtt/sessions/{id}', 503)],
])(
  'a gateway stays ready, and logs no id and no words of an upstream that %s',
  async (_, path, status, failed) => {
    const { service, openAnother } = await open();
    const said = failure(status, 'carol@example.com may not read session 4711');
    service.misbehave({ instead: () => said }, { path });
    const gateway = await openAnother({ UPSTREAM_TOKEN: alice });
    const report = `^ready\nupstream: last success (never|2\\S+Z), last error 2\\S+Z ${failed.failure}\n$`;
    await expect.poll(() => probe(gateway)).toMatch(new RegExp(report));
    const lines = gateway.log.map((line) => JSON.parse(line));
    expect(lines).toContainEqual(expect.objectContaining({ ...failed, msg: 'mirror not refreshed' }));
    expect(gateway.log.join('')).not.toMatch(/carol|4711|alice|offset/);
  },
);

it('a gateway reports and logs that its mirror cannot be written', async () => {
  const { gateway, database } = await open({ settings: { UPSTREAM_TOKEN: alice, UPSTREAM_INTERVAL: '1' } });
  await expect.poll(() => probe(gateway)).toMatch(/last success 2/);
  await database.pool.query('ALTER TABLE "MirroredAccount" RENAME TO "Away"');
  onTestFinished(async () => {
    await database.pool.query('ALTER TABLE "Away" RENAME TO "MirroredAccount"');
  });
  await expect.poll(() => probe(gateway)).toMatch(/last error 2\S+Z the mirror could not be written\n$/);
  expect(gateway.log.find((line) => line.includes('mirror not refreshed'))).toContain('does not exist');
});
