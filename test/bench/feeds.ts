/**
 * The common parts of the measurements for `--feed`: how much the announcement of changes slows down writers, with each of the two
 * feeds and different numbers of listening gateways, and how soon subscriptions receive a change.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { dovetail } from './contestants.ts';
import type { BenchDatabase } from './database.ts';
import { type ServerProcess, startServer } from './processes.ts';

export interface FeedOptions {
  database: BenchDatabase;
  node: string;
  env: Readonly<Record<string, string>>;
  settings: { readonly rounds: number; readonly seconds: number; readonly connections: number };
  quick: boolean;
  progress(text: string): void;
}

/** Settings of a server whose commits wait for the disk, as in production, and which supports both feeds. */
export const feedServer = { fsync: 'on', full_page_writes: 'on', wal_level: 'logical' };

export const feeds = ['notify', 'logical'] as const;
export type Feed = (typeof feeds)[number];

/** Sets the feed by which the database announces changes. No gateway may be listening to the other one. */
export async function switchTo(database: BenchDatabase, feed: Feed): Promise<void> {
  await database.query('DROP PUBLICATION IF EXISTS dovetail');
  if (feed === 'logical') await database.query('CREATE PUBLICATION dovetail');
  await database.query('SELECT announce_by($1)', [feed]);
}

/** Starts a gateway that listens to this feed, and waits until it does. */
export async function startListening({ node, env }: FeedOptions, feed: Feed): Promise<ServerProcess> {
  const command = dovetail({ node, cachesResponses: true });
  const gateway = await startServer({ ...command, env: { ...env, ...command.env, CHANGE_FEED: feed } });
  for (let tries = 0; !(await isListening(gateway)); tries++) {
    if (tries === 300) throw new Error(`the gateway does not receive changes by ${feed}`);
    await sleep(100);
  }
  return gateway;
}

async function isListening({ url }: ServerProcess): Promise<boolean> {
  const response = await fetch(`${url}/readyz`);
  return !(await response.text()).includes('not heard');
}
