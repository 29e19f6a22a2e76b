/**
 * What the measures of the feeds have in common: `--feed` says what it costs those who write that changes are announced, by
 * each of the two feeds and with gateways that listen or none, and how soon a change comes to those who wait for it.
 */

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

/** Gateways that listen in the way that is named, to a database that announces in it. */
export function startListening({ node, env }: FeedOptions, feed: Feed): Promise<ServerProcess> {
  const command = dovetail({ node, cachesResponses: true });
  return startServer({ ...command, env: { ...env, ...command.env, CHANGE_FEED: feed } });
}
