/**
 * What the measures of the feeds have in common: `--feed` says what it costs those who write that changes are announced, by
 * each of the two feeds and with gateways that listen or none, and how soon a change comes to those who wait for it.
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

/** A server whose commits wait for the disk, as they do where data matters, and which can do both feeds. */
export const feedServer = { fsync: 'on', full_page_writes: 'on', wal_level: 'logical' };

export const feeds = ['notify', 'logical'] as const;
export type Feed = (typeof feeds)[number];

/** Has the database announce in the way that is named. Nobody may be listening in the other one. */
export async function switchTo(database: BenchDatabase, feed: Feed): Promise<void> {
  await database.query('DROP PUBLICATION IF EXISTS dovetail');
  if (feed === 'logical') await database.query('CREATE PUBLICATION dovetail');
  await database.query('SELECT announce_by($1)', [feed]);
}

/** A gateway that listens to the database, in the way in which that announces. */
export async function startListening({ node, env }: FeedOptions, feed: Feed): Promise<ServerProcess> {
  const command = dovetail({ node, cachesResponses: true });
  const gateway = await startServer({ ...command, env: { ...env, ...command.env, CHANGE_FEED: feed } });
  for (let tries = 0; !(await isListening(gateway)); tries++) {
    if (tries === 300) throw new Error(`the gateway does not hear what is announced by ${feed}`);
    await sleep(100);
  }
  return gateway;
}

async function isListening({ url }: ServerProcess): Promise<boolean> {
  const response = await fetch(`${url}/readyz`);
  return !(await response.text()).includes('not heard');
}
