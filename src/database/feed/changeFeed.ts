/**
 * The change feed: tells whose data has changed, whichever program changed it. The triggers in the migrations announce
 * changes; the modules of this folder receive the announcements: `keepListening.ts` however they come, `notify.ts` by
 * NOTIFY, `log.ts` by messages in the write-ahead log. Promised is that a feed counts as listening only while it hears itself.
 * It may be replaced by one that never listens: then nothing is cached.
 */

import type { Prisma } from '../generated/prisma/client.ts';

/** A table that has announcements. */
export type Table = Prisma.ModelName;

export type Change =
  /** Data of one user have changed. */
  | { readonly kind: 'user'; readonly userId: number; readonly table: Table }
  /** Rows of any user may have changed: of the table, or of all tables if announcements may have been missed. */
  | { readonly kind: 'all'; readonly table?: Table };

/** Whether tokens may have changed. */
export const concernsTokens = ({ table }: Change): boolean => table === undefined || table === 'ApiToken';

export type ChangeListener = (change: Change) => void;

/** How changes are announced: by NOTIFY, or by messages in the log of the database. */
export type FeedKind = 'notify' | 'logical';

export interface ChangeFeed {
  /** How announcements arrive, or arrived last. */
  readonly kind: FeedKind;
  /** Whether announcements are proved to arrive. While they are not, nothing that was read before may be used again. */
  readonly listening: boolean;
  /**
   * Waits until every change has been announced here that could be read when it was called, and returns whether that has
   * happened: a change can be read a moment before it is announced. Absent where it cannot (embedded engine).
   */
  readonly catchUp?: () => Promise<boolean>;
  /** How often announcements have begun to arrive again after a loss. */
  readonly reconnects: number;
  /** Calls the listener for every change, once it can be read, until the returned function is called. */
  subscribe(listener: ChangeListener): () => void;
  close(): Promise<void>;
}

/**
 * The changes that a payload announces: `<user id> <table>`, `<user id>,<user id> <table>` if a row came from one user to another,
 * or `* <table>` if it concerns all users.
 */
export function changesOf(payload: string): Change[] {
  const [users = '', table = ''] = payload.split(' ');
  // The triggers send the names of their own tables.
  if (/^\d+(,\d+)?$/.test(users))
    return users.split(',').map((user) => ({ kind: 'user', userId: Number(user), table: table as Table }));
  return [users === '*' && table !== '' ? { kind: 'all', table: table as Table } : { kind: 'all' }];
}
