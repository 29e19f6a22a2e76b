/**
 * The change feed: whose data changed, whoever changed it. The triggers in the migrations announce it; the modules of
 * this folder listen.
 */

import type { Prisma } from '../generated/prisma/client.ts';

/** Where announcements go that are made by NOTIFY. */
export const channel = 'dovetail';

/** What a gateway says to a server to listen there, by which it is told from those of earlier versions. */
export const listenStatement = `LISTEN ${channel} /* and to messages */`;

/** A table that has announcements. */
export type Table = Prisma.ModelName;

export type Change =
  /** Something of one user changed. */
  | { readonly kind: 'user'; readonly userId: number; readonly table: Table }
  /** Anything may have changed: anybody's rows of the table, or of all tables where announcements may have been missed. */
  | { readonly kind: 'all'; readonly table?: Table };

/** Whether tokens may have changed. */
export const concernsTokens = ({ table }: Change): boolean => table === undefined || table === 'ApiToken';

export type ChangeListener = (change: Change) => void;

/** How changes are announced: by NOTIFY, or by messages in the log of the database. */
export type FeedKind = 'notify' | 'logical';

export interface ChangeFeed {
  /** How announcements arrive, or did last. */
  readonly kind: FeedKind;
  /** Whether announcements are known to arrive. While they aren't, nothing that was read before may be trusted. */
  readonly listening: boolean;
  /**
   * Whether what is read of a user now may be remembered, and what was remembered may be used: announcements are known to
   * arrive, and none has come of a change of theirs that snapshots may not see yet.
   */
  mayCache(userId: number): boolean;
  /**
   * Has everything heard of that could be read when it was called, and says whether that is so now: a change can be read
   * a moment before it is announced. Not there where it cannot.
   */
  readonly catchUp?: () => Promise<boolean>;
  /** How often announcements began to arrive again. */
  readonly reconnects: number;
  /** Calls the listener for every change from now on, once it can be read, until the returned function is called. */
  subscribe(listener: ChangeListener): () => void;
  close(): Promise<void>;
}

/** What was announced: `<user id> <table>`, or `* <table>` when it concerns everybody. */
export function changeOf(payload: string): Change {
  const [user = '', table = ''] = payload.split(' ');
  // The triggers send the names of their own tables.
  if (/^\d+$/.test(user)) return { kind: 'user', userId: Number(user), table: table as Table };
  return user === '*' && table !== '' ? { kind: 'all', table: table as Table } : { kind: 'all' };
}
