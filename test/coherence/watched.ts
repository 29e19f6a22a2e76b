/** What the tests of coherence have in common: gateways that are watched, and how a program is run and checked. */

import type pg from 'pg';
import { expect } from 'vitest';
import type { Change } from '../../src/database/feed/changeFeed.ts';
import { type Account, createAccount, importTemplate } from '../support/accounts.ts';
import type { TestDatabase, TestGateway } from '../support/gateway.ts';
import { type Activation, Floor, findStale, type Seen } from './floor.ts';
import type { UsualStep } from './programs.ts';
import { activate, ask, type Read, reads } from './reads.ts';
import { hold, marker, preparation, write } from './writes.ts';

export interface Watched {
  readonly gateway: TestGateway;
  /** What this gateway knows: the announcements that it has processed, and the writes through it. */
  readonly floor: Floor;
  /** What it has shown to each account, announced or not. */
  readonly shown: Map<Account, Floor>;
}

/** A write through a gateway, and the position of the database after it. */
export interface Written {
  readonly activation: Activation;
  readonly position: string | undefined;
}

/** All writes that were acknowledged. */
export const acknowledged = new Floor();

/** Creates two accounts, of which one has imported a template of the other, and has their rows count their changes. */
export async function createAccounts({ client, pool }: TestDatabase): Promise<readonly Account[]> {
  // Files that run in one process share this module, and each has a database of its own.
  acknowledged.counts.clear();
  acknowledged.activations.length = 0;
  const [alice, bob] = [await createAccount(client, 'alice'), await createAccount(client, 'bob')];
  await pool.query(preparation);
  await importTemplate(client, bob, alice.dttTemplates[0]);
  return [alice, bob];
}

export function watch(gateway: TestGateway): Watched {
  const floor = new Floor();
  // No read may be older than the changes of earlier tests, which nothing announces again.
  if (gateway.feed.listening) floor.raiseTo(acknowledged);
  // The gateway's own components subscribed before, so they have processed what arrives here.
  gateway.feed.subscribe((change: Change) => {
    if (change.kind === 'all') {
      // Announcements may have been missed, so from here on nothing from before may be served.
      if (gateway.feed.listening) floor.raiseTo(acknowledged);
    } else if (change.userId === marker) {
      const [table, id, count] = change.table.split(':');
      floor.raise([[`${table} ${id}`, Number(count)]]);
    }
  });
  return { gateway, floor, shown: new Map() };
}

/** Reads through a gateway. @param known a write that the client knows of, whose position it sends. */
async function readAt(watched: Watched, account: Account, request: Read, known?: Written): Promise<Seen> {
  const { gateway, floor, shown } = watched;
  const shownBefore = shown.get(account) ?? new Floor();
  shown.set(account, shownBefore);
  // While the feed of a gateway is down, or has announced a change that cannot be read yet, the gateway reads from the database,
  // which has all that was acknowledged.
  const begun = gateway.feed.listening ? floor.copy() : acknowledged.copy();
  if (known) begun.activations.push(known.activation);
  begun.raiseTo(shownBefore);
  const data = await ask(gateway, account.token, request, known?.position);
  const what = `${request.by} ${request.ask} of ${account.username} at ${gateway.url}`;
  const seen = { what, userId: account.userId, floor: begun, ...request.see(data) };
  shownBefore.raise(seen.counts);
  return seen;
}

/** Activates a template of the account through a gateway, which knows of it from then on. */
async function activateAt(
  { gateway, floor }: Watched,
  account: Account,
  templateId: number,
  endpoint: 'REST' | 'GraphQL',
  gateways: readonly Watched[],
): Promise<Written> {
  const known = [acknowledged, ...gateways.map((watched) => watched.floor)];
  const after = Math.max(...known.map(({ counts }) => counts.get(`User ${account.userId}`) ?? 0));
  const position = await activate(gateway, account, templateId, endpoint);
  const activation = { userId: account.userId, templateId, after };
  floor.activations.push(activation);
  acknowledged.activations.push(activation);
  return { activation, position };
}

/** Takes a step. @param written the last write of each account through a gateway, whose position some reads send. */
export async function takeUsual(
  { own, gateways, accounts }: Omit<Scene, 'haveCaughtUp'>,
  next: UsualStep,
  seen: Seen[],
  written = new Map<Account, Written>(),
): Promise<void> {
  const account = at(accounts, next.account);
  const watched = at(gateways, next.place);
  if (next.kind === 'read')
    for (let time = 0; time < next.times; time++) {
      const known = next.sendsPosition ? written.get(account) : undefined;
      seen.push(await readAt(watched, account, at(reads, next.request), known));
    }
  else if (next.kind === 'activate') {
    const template = at(account.dttTemplates, next.template);
    written.set(account, await activateAt(watched, account, template, next.endpoint, gateways));
  } else acknowledged.raise(await hold(own, next.held, (client) => write(client, account, next.table)));
}

/** Waits until the gateway has processed the announcements of all acknowledged changes. */
export async function hasCaughtUp({ floor }: Watched): Promise<void> {
  const behind = () =>
    [...acknowledged.counts].filter(([register, count]) => (floor.counts.get(register) ?? 0) < count);
  await expect.poll(behind, { interval: 2 }).toEqual([]);
}

/** What a test of coherence works on. */
export interface Scene {
  readonly own: pg.Pool;
  readonly gateways: readonly Watched[];
  readonly accounts: readonly Account[];
  /** Waits until the gateways have processed all announcements. */
  haveCaughtUp(): Promise<unknown>;
}

/** Sends all reads to all gateways. */
const readAll = ({ gateways, accounts }: Scene): Promise<Seen[]> =>
  Promise.all(
    gateways.flatMap((watched) =>
      accounts.flatMap((account) => reads.map((request) => readAt(watched, account, request))),
    ),
  );

/** Sends all reads to all gateways, which have to show all that was acknowledged by now. */
export async function readNewest(scene: Scene): Promise<Seen[]> {
  return (await readAll(scene)).map((one) => ({ ...one, floor: acknowledged.copy() }));
}

/** Runs a program, which adds what it has seen, and checks that nothing was older than what was known. */
export async function checkProgram(scene: Scene, run: () => Promise<void>, seen: Seen[]): Promise<void> {
  const { own, gateways, accounts } = scene;
  // Activations of the program before are in the counts by now.
  for (const { activations } of [acknowledged, ...gateways.map(({ floor }) => floor)]) activations.length = 0;
  await run();
  // Before further announcements, which would hide a missing one.
  await scene.haveCaughtUp();
  seen.push(...(await readAll(scene)));
  // The counts of the activations are not known. A later write, whose count is known, is announced after them.
  for (const account of accounts) acknowledged.raise(await write(own, account, 'User'));
  await scene.haveCaughtUp();
  // And once more, from the cache.
  seen.push(...(await readNewest(scene)), ...(await readNewest(scene)));
  expect(await findStale(own, seen)).toEqual([]);
}

export function at<Value>(values: readonly Value[], index: number): Value {
  const value = values[index % values.length];
  if (value === undefined) throw new RangeError(`there is nothing at ${index}`);
  return value;
}
