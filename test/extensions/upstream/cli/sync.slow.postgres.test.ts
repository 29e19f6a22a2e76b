/** `dovetail sync`: its output, and its exit codes. */

import { afterAll, afterEach, beforeEach, expect, it } from 'vitest';
import { openTestDatabase } from '../../../support/gateway.ts';
import { endProcesses, startCli } from '../../../support/processes.ts';
import { runHere } from '../../../support/runHere.ts';
import { faults } from '../support/standIn/faults.ts';
import { failure } from '../support/standIn/reads.ts';
import { createStandIn } from '../support/standIn/standIn.ts';

const service = await createStandIn({
  rate: 100_000,
  accounts: [{ id: 1, username: 'alice', tokens: ['alice'] }],
});
/** The database of the mirror, which is open while the command runs, and empty before each test. */
const mirror = await openTestDatabase();
beforeEach(async () => {
  // All other rows belong to users.
  await mirror.pool.query('TRUNCATE "User" CASCADE');
  service.behave();
});
afterEach(endProcesses);
afterAll(async () => {
  await service.stop();
  await mirror.close();
});

const ofMirror = () => ({ DATABASE_URL: String(mirror.pool.options.connectionString) });
const settings = () => ({ ...ofMirror(), UPSTREAM_TOKEN: 'alice' });
const sync = (...args: string[]) => runHere(['sync', '--from', service.base, ...args], settings());

it('mirrors the account of --from or else of UPSTREAM_URL, fetches only changes the next time, and nothing beside another run', async () => {
  const first = await runHere(['sync', '--from', service.base], {
    ...settings(),
    UPSTREAM_URL: 'http://127.0.0.1:1/api/v1',
  });
  expect(first.stderr).toMatch(
    /^(.* so far\n)*Done, with \d+ requests\.\nNext: DATABASE_URL=\S+ npx dovetail-gateway token create --user alice --name mirror\n$/,
  );
  expect(first.stdout).toMatch(/^ +fetched +written .*\nuser +1 +0 /);
  expect(first.code).toBe(0);

  const upstream = { ...settings(), UPSTREAM_URL: service.base };
  const second = await runHere(['sync', '--json'], upstream);
  expect(second.stderr).toMatch(/^(.* so far\n)*Nothing has changed, with \d+ requests\.\n/);
  expect(JSON.parse(second.stdout)).toEqual({
    username: 'alice',
    requests: Number(/with (\d+) requests/.exec(second.stderr)?.[1]),
    notes: [],
    records: expect.objectContaining({
      user: { fetched: 1, written: 0, gone: 0, skipped: 0 },
    }),
  });
  expect(second.code).toBe(0);

  await mirror.pool.query(
    `UPDATE "MirroredAccount" SET "heldBy" = 'another', "heldUntil" = now() + interval '30 seconds'`,
  );
  expect(await sync()).toMatchObject({
    code: 1,
    stderr: 'Another run is under way. Try again when it has ended.\n',
  });
});

it('fetches every session again with --full, and has a note about what is missing', async () => {
  await sync();
  service.misbehave({ instead: () => failure(404, 'Not found') }, { path: /^\/(ossm|users\/me)$/ });
  service.forgetRequests();
  const { stderr, stdout } = await sync('--json', '--full');
  const { notes } = JSON.parse(stdout);
  expect(notes).toHaveLength(1);
  // The notes of the JSON are printed on standard error as well.
  expect(stderr.split('\n')).toContain(notes[0]);
  expect(service.requests.filter(({ path }) => /\/dtt\/sessions\/\d+$/.test(path))).toHaveLength(12);
});

it.each([
  [
    'a token that the upstream rejects',
    'dvt_wrong',
    /^GET \/users\/me: the upstream does not accept the token\n$/,
  ],
  ['no token', '', /^UPSTREAM_TOKEN is not set: it takes the API token for http:.*\n$/],
])('exits with 1 and one line for %s', async (_, UPSTREAM_TOKEN, line) => {
  const given = { ...ofMirror(), UPSTREAM_URL: service.base, UPSTREAM_TOKEN };
  const stderr = expect.stringMatching(line);
  expect(await runHere(['sync'], given)).toEqual({ code: 1, stdout: '', stderr });
});

it.each(['SIGINT', 'SIGTERM'] as const)('exits with 130 at %s', async (signal) => {
  service.misbehave(faults.hang, { path: /^\/dtt$/ });
  service.forgetRequests();
  const { child, exit } = startCli(['sync', '--from', service.base], settings());
  await expect
    .poll(() => service.requests.map(({ path }) => path))
    .toContainEqual(expect.stringMatching(/^\/dtt\?/));
  child.kill(signal);
  expect(await exit).toEqual({
    code: 130,
    stdout: '',
    stderr: expect.stringMatching(
      /^(.* so far\n)*Interrupted\. What was read is stored, and the next run goes on\.\n$/,
    ),
  });
});
