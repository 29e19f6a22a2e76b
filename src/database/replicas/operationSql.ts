/** The SQL interface of one operation: all its reads go to one server, which is the primary as soon as it has written. */

import pg from 'pg';
import type { Sql } from '../reader/sql.ts';
import { isUnresponsive } from '../session.ts';
import type { Standby } from './standby.ts';

export interface OperationOptions {
  /** How long, in milliseconds, a statement may take. */
  readonly longest: number;
  /** Selects the standby that the operation reads from, at its first read; undefined for the primary. */
  choose(): Promise<Standby | undefined>;
  /** Called before each use of the primary. Waits until the primary shows what the viewer has seen on a standby. */
  readyPrimary(): Promise<void>;
  /** Called when a read or a write has ended. */
  noteUse(standby: Standby | undefined): void;
  /** Called when a read that failed on a standby is repeated on the primary. */
  retried(): void;
}

/** A read whose statement was stopped is repeated on the primary only within this share of its time limit. */
const retryUntil = 0.9;

/**
 * Whether a statement was stopped while it ran: by the server, of which the code does not say whether that was for its time
 * (`query_canceled`), or since the server was silent for longer.
 */
const wasStopped = (error: unknown) =>
  error instanceof pg.DatabaseError ? error.code === '57014' : isUnresponsive(error);

export function createOperationSql(
  primary: Sql,
  { longest, choose, readyPrimary, noteUse, retried }: OperationOptions,
): Sql {
  let choosing: Promise<Standby | undefined> | undefined;

  async function read<Rows>(use: (sql: Sql) => Promise<Rows>): Promise<Rows> {
    choosing ??= choose();
    const standby = await choosing;
    if (!standby) return usePrimary(use);
    const began = performance.now();
    try {
      const rows = await use(standby.sql);
      noteUse(standby);
      return rows;
    } catch (error) {
      standby.failed(error);
      // On the primary it would probably take as long. Whatever else took time was a wait there: for a connection, or for a lock.
      if (wasStopped(error) && performance.now() - began > retryUntil * longest) throw error;
      retried();
      return usePrimary(use);
    }
  }

  async function usePrimary<Rows>(use: (sql: Sql) => Promise<Rows>): Promise<Rows> {
    // Later reads have to show what was written, or read here.
    choosing = Promise.resolve(undefined);
    await readyPrimary();
    try {
      return await use(primary);
    } finally {
      noteUse(undefined);
    }
  }

  return {
    findMany: (...given) => read((sql) => sql.findMany(...given)),
    count: (...given) => read((sql) => sql.count(...given)),
    run: <Row extends object>(...given: Parameters<Sql['run']>) => read((sql) => sql.run<Row>(...given)),
    write: <Row extends object>(...given: Parameters<Sql['write']>) =>
      usePrimary((sql) => sql.write<Row>(...given)),
    writeAndFind: (...given) => usePrimary((sql) => sql.writeAndFind(...given)),
  };
}
