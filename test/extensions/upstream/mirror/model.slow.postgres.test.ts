/**
 * Two gateways over one database, in front of a stand-in whose accounts change at random while clients read, write and
 * activate, and while the stand-in fails at times. Meanwhile no response shows another account's records, or an older version
 * than an earlier response of the same gateway, or the name of one version with the details of another; in the end both
 * gateways have what the stand-in has.
 *
 * `SEED=…` repeats the same changes, and `FUZZ_MINUTES=…` sets for about how many minutes runs are repeated.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { TestGateway } from '../../../support/gateway.ts';
import { compare } from '../support/compare.ts';
import { activate, arrive, ask, openForEachTest, patch } from '../support/frontedService.ts';
import { type Fault, faults } from '../support/standIn/faults.ts';
import { createRandom, type Random } from '../support/standIn/random.ts';
import type { StandIn } from '../support/standIn/standIn.ts';
import { changeSomething, markerOf, timeOf, versionedName } from './model/changes.ts';

const seed = Number(process.env.SEED ?? Date.now() % 2 ** 31);
const minutes = Number(process.env.FUZZ_MINUTES ?? 0);
/** A run takes five to ten seconds. */
const runs = Math.max(1, minutes * 6);
const steps = 40;

const tokensOf: Readonly<Record<number, readonly [string, ...string[]]>> = {
  1: ['first-of-1', 'second-of-1'],
  2: ['first-of-2'],
  3: ['first-of-3', 'second-of-3'],
};
const accountIds = [1, 2, 3] as const;
const tokenOf = (random: Random, accountId: number) => random.pick(tokensOf[accountId] ?? ['']);

/** The clock of the upstream, where no later version of a record has an earlier time. */
const clock = { version: 0 };

const open = openForEachTest();
const options = (random: Random) => ({
  timing: { timeout: 300, retries: 1, delay: 1 },
  standIn: {
    now: () => new Date(timeOf(clock.version)),
    accounts: accountIds.map((id) => ({
      id,
      username: `user ${id}`,
      marker: markerOf(id),
      tokens: tokensOf[id] ?? [],
      locked: id === 1,
      // Sometimes this is more than a page.
      size: { sessions: random.pick([3, 12, 12, 110]) },
    })),
  },
});

const query = `{ viewer { databaseId }
  dttSessions(first: 100) { nodes { databaseId name segments { details: repsTarget } } }
  dttTemplates(first: 100) { nodes { databaseId name segments { details: durationSeconds } } }
  dttDevices(first: 100) { nodes { databaseId name: softwareVersion } } }`;
const lists = ['dttSessions', 'dttTemplates', 'dttDevices'] as const;

interface Shown {
  readonly databaseId: number;
  readonly name: string | null;
  readonly segments?: readonly { readonly details: number | null }[];
}

const noCache = { 'Cache-Control': 'no-cache' };

/** A gateway with the newest versions that it has shown, by account, list and record. */
interface Watched {
  readonly gateway: TestGateway;
  readonly newest: Map<string, number>;
}

/** Reads as a client of an account does. @returns what is wrong with the response. */
async function readAndCheck(random: Random, { gateway, newest }: Watched): Promise<string[]> {
  const accountId = random.pick(accountIds);
  // What is shown while this read is under way may be newer.
  const before = new Map(newest);
  const headers = random.below(3) === 0 ? noCache : {};
  const { status, body } = await ask(gateway, tokenOf(random, accountId), query, headers);
  if (status !== 200 || body.errors) return [];
  const problems: string[] = [];
  if (body.data.viewer.databaseId !== accountId) problems.push(`account ${accountId} is shown another`);
  for (const list of lists) {
    for (const { databaseId, name, segments = [] } of body.data[list].nodes as Shown[]) {
      const what = `${list} ${databaseId} of account ${accountId}`;
      const version = Number(/ v(\d+)$/.exec(name ?? '')?.[1] ?? 0);
      const isOthers = name?.includes('owner-') && !name.includes(markerOf(accountId));
      if (isOthers && list !== 'dttTemplates') problems.push(`${what} is another account's: ${name}`);
      if (version < (before.get(what) ?? 0))
        problems.push(`${what} is v${version} after v${before.get(what)}`);
      if (version > 0 && segments.some(({ details }) => details !== version))
        problems.push(`${what} is v${version} with the details of another version`);
      newest.set(what, Math.max(version, newest.get(what) ?? 0));
    }
  }
  return problems;
}

/** A write of a client, which the gateway forwards. While the upstream fails, the response may be anything. */
async function write(service: StandIn, random: Random, gateway: TestGateway, version: number): Promise<void> {
  const account = service.account(random.pick(accountIds));
  const [id = 0] = account.ownTemplates;
  const Segment = service.world.templates
    .get(id)
    ?.Segment.map((segment) => ({ ...segment, duration: version }));
  if (!Segment) return;
  const written = { name: versionedName(account.id, version), Segment };
  const writing = patch(gateway, tokenOf(random, account.id), `/dtt/templates/${id}`, written);
  await writing.catch((error: unknown) => {
    // A page of HTML is handed on as it is.
    if (!(error instanceof SyntaxError)) throw error;
  });
}

async function activateOne(service: StandIn, random: Random, gateway: TestGateway): Promise<void> {
  const account = service.account(random.pick(accountIds));
  await activate(gateway, tokenOf(random, account.id), [...account.ownTemplates].at(-1) ?? 0);
}

/** Makes the upstream fail for a moment. */
function misbehave(service: StandIn, random: Random): void {
  const path = random.pick([/./, /sessions/, /templates/, /me$/]);
  const { error500, html, html200, brokenJson, lostResponse, hang, slow, unavailable } = faults;
  const ended = [error500, html, html200, brokenJson, lostResponse] as const;
  const fault = random.pick<Fault>([...ended, hang, slow(150), unavailable(1)]);
  service.misbehave(fault, { path });
  // The fault ends by itself: a write waits for its response, and the next step for the write.
  setTimeout(() => service.behave(), random.below(400));
}

/** @returns what was wrong with any response. */
async function live(
  service: StandIn,
  random: Random,
  watched: readonly [Watched, Watched],
): Promise<string[]> {
  const reads: Promise<string[]>[] = [];
  for (let version = 1; version <= steps; version++) {
    clock.version = version;
    const { gateway } = random.pick(watched);
    const step = random.below(12);
    if (step < 5) for (let n = 0; n < 3; n++) changeSomething(service, random, version);
    // A write has to be over before there is a newer version.
    else if (step === 5) await write(service, random, gateway, version);
    else if (step === 6) await activateOne(service, random, gateway);
    else if (step === 7) misbehave(service, random);
    else reads.push(readAndCheck(random, random.pick(watched)));
    await sleep(random.pick([0, 0, 5, 20, 60]));
  }
  service.behave();
  const problems = (await Promise.all(reads)).flat();
  // What was read before the last change is at least a second old from here on.
  await sleep(1_000);
  return problems;
}

/** What a gateway shows of an account once it has read everything again. */
async function refreshed(gateway: TestGateway, token: string): Promise<unknown> {
  let shown: unknown;
  // After a fault the gateway sends nothing upstream for a while, and responds with what it has read before.
  const read = async () => {
    const { status, headers, body } = await ask(gateway, token, query, noCache);
    shown = body;
    return [status, headers.get('Age')];
  };
  await expect.poll(read).toEqual([200, '0']);
  return shown;
}

it.each(Array.from({ length: runs }, (_, run) => seed + run))(
  'both gateways show what the upstream has, through random changes and faults, SEED=%d',
  async (runSeed) => {
    const random = createRandom(runSeed);
    const fronted = await open(options(random));
    const { gateway, openAnother, service } = fronted;
    const other = await openAnother();
    for (const id of accountIds) await arrive(gateway, tokensOf[id]?.[0] ?? '');
    const watch = (each: TestGateway): Watched => ({ gateway: each, newest: new Map() });
    const problems = await live(service, random, [watch(gateway), watch(other)]);
    for (const id of accountIds) {
      const token = tokensOf[id]?.[0] ?? '';
      expect(await refreshed(gateway, token)).toEqual(await refreshed(other, token));
      problems.push(...(await compare(service, fronted.database, id, token)));
    }
    expect(problems).toEqual([]);
  },
  120_000,
);
