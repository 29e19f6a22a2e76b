/** What the tests of coherence have in common: gateways that are watched, and changes that are made past them. */

import type pg from 'pg';
import { expect } from 'vitest';
import type { Change } from '../../src/database/feed/changeFeed.ts';
import type { Account } from '../support/accounts.ts';
import type { TestGateway } from '../support/gateway.ts';
import { type Activation, type Counts, Floor } from './floor.ts';
import { activate } from './reads.ts';
import {
  atOnce,
  type Holding,
  hold,
  type leaves,
  marker,
  restore,
  setImport,
  type Table,
  write,
  writeAsReplica,
} from './writes.ts';

export interface Watched {
  readonly gateway: TestGateway;
  /** What this gateway knows: the announcements that it has processed, and the writes through it. */
  readonly floor: Floor;
  /** Whether it has a change feed. */
  readonly hasFeed: boolean;
  /** What it has shown to each account, announced or not. */
  readonly shown: Map<Account, Floor>;
}

/** @param acknowledged all writes that were acknowledged. */
export function watch(gateway: TestGateway, acknowledged: Floor, hasFeed = true): Watched {
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
  return { gateway, floor, hasFeed, shown: new Map() };
}

/** What a gateway has shown to an account so far. */
export function shownTo({ shown }: Watched, account: Account): Floor {
  const before = shown.get(account) ?? new Floor();
  shown.set(account, before);
  return before;
}

/** Activates a template of the account through a gateway, which knows of it from then on. */
export async function activateAt(
  { gateway, floor }: Watched,
  account: Account,
  templateId: number,
  endpoint: 'REST' | 'GraphQL',
  acknowledged: Floor,
  gateways: readonly Watched[],
): Promise<{ activation: Activation; position: string | undefined }> {
  const known = [acknowledged, ...gateways.map((watched) => watched.floor)];
  const after = Math.max(...known.map(({ counts }) => counts.get(`User ${account.userId}`) ?? 0));
  const position = await activate(gateway, account, templateId, endpoint);
  const activation = { userId: account.userId, templateId, after };
  floor.activations.push(activation);
  acknowledged.activations.push(activation);
  return { activation, position };
}

export type DirectChange =
  | { readonly kind: 'write'; readonly table: Table; readonly asReplica: boolean; readonly held: Holding }
  | { readonly kind: 'import'; readonly wanted: boolean; readonly held: Holding }
  | { readonly kind: 'restore'; readonly table: (typeof leaves)[number] };

/** Changes data directly in the database, and returns the new counts once the change is acknowledged. */
export function changeDirectly(
  own: pg.Pool,
  accounts: readonly Account[],
  account: Account,
  next: DirectChange,
): Promise<Counts> {
  if (next.kind === 'restore') return hold(own, atOnce, (client) => restore(client, next.table));
  if (next.kind === 'import') {
    const other = accounts.find((each) => each !== account);
    const template = at(other?.dttTemplates ?? [], 0);
    return hold(own, next.held, (client) => setImport(client, account, template, next.wanted));
  }
  const change = next.asReplica ? writeAsReplica : write;
  return hold(own, next.held, (client) => change(client, account, next.table));
}

/** Waits until the gateway has processed the announcements of all acknowledged changes. */
export async function hasCaughtUp({ floor, hasFeed }: Watched, acknowledged: Floor): Promise<void> {
  if (!hasFeed) return;
  const behind = () =>
    [...acknowledged.counts].filter(([register, count]) => (floor.counts.get(register) ?? 0) < count);
  await expect.poll(behind, { interval: 2 }).toEqual([]);
}

export function at<Value>(values: readonly Value[], index: number): Value {
  const value = values[index % values.length];
  if (value === undefined) throw new RangeError(`there is nothing at ${index}`);
  return value;
}
