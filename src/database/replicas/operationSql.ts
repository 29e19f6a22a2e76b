/** The SQL interface of one operation: all its reads go to one server, which is the primary as soon as it has written. */

import pg from 'pg';
import type { Sql } from '../reader/sql.ts';
import { isUnresponsive } from '../session.ts';
import type { Standby } from './standby.ts';

export interface OperationOptions {
  /** How long, in milliseconds, a statement may take. */
  readonly longest: number;
  /**
   * Selects the server that the operation reads from, at its first read; undefined for the primary.
   * @param isAgain whether it was called before for this operation.
   */
  choose(isAgain: boolean): Promise<Standby | undefined>;
  /** Called before each use of the primary. Waits until the primary shows what the viewer has seen on a standby. */
  readyPrimary(): Promise<void>;
  /** Called when a read has ended. */
  noteRead(standby: Standby | undefined): void;
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
  { longest, choose, readyPrimary, noteRead, retried }: OperationOptions,
): Sql {
  const { onStandby, usePrimary } = createUses(primary, noteRead);
  let choosing: Promise<Standby | undefined> | undefined;
  let hasWritten = false;

  async function read<Rows>(use: (sql: Sql) => Promise<Rows>): Promise<Rows> {
    choosing ??= choose(false);
    const standby = await choosing;
    if (!standby) return backOnPrimary(use);
    const began = performance.now();
    try {
      return await onStandby(standby, use);
    } catch (error) {
      // On the primary it would probably take as long. Whatever else took time was a wait there: for a connection, or for a lock.
      if (wasStopped(error) && performance.now() - began > retryUntil * longest) throw error;
      retried();
      choosing = Promise.resolve(undefined);
      return backOnPrimary(use);
    }
  }

  /** Reads on the primary, or on a standby if the primary does not show in time what a standby has shown. */
  async function backOnPrimary<Rows>(use: (sql: Sql) => Promise<Rows>): Promise<Rows> {
    try {
      await readyPrimary();
    } catch (error) {
      // A standby may not show yet what the operation itself has written.
      const standby = await choose(true);
      if (!standby || hasWritten) throw error;
      choosing = Promise.resolve(standby);
      return onStandby(standby, use);
    }
    return usePrimary(use);
  }

  async function write<Rows>(use: (sql: Sql) => Promise<Rows>): Promise<Rows> {
    // Later reads have to show what was written.
    choosing = Promise.resolve(undefined);
    hasWritten = true;
    await readyPrimary();
    return usePrimary(use);
  }

  return {
    findMany: (...given) => read((sql) => sql.findMany(...given)),
    count: (...given) => read((sql) => sql.count(...given)),
    run: <Row extends object>(...given: Parameters<Sql['run']>) => read((sql) => sql.run<Row>(...given)),
    write: <Row extends object>(...given: Parameters<Sql['write']>) =>
      write((sql) => sql.write<Row>(...given)),
    writeAndFind: (...given) => write((sql) => sql.writeAndFind(...given)),
  };
}

/** Runs reads and writes on either server, and reports when they have ended. */
function createUses(primary: Sql, hasRead: OperationOptions['noteRead']) {
  async function onStandby<Rows>(standby: Standby, use: (sql: Sql) => Promise<Rows>): Promise<Rows> {
    try {
      const rows = await use(standby.sql);
      hasRead(standby);
      return rows;
    } catch (error) {
      standby.failed(error);
      throw error;
    }
  }

  async function usePrimary<Rows>(use: (sql: Sql) => Promise<Rows>): Promise<Rows> {
    try {
      return await use(primary);
    } finally {
      hasRead(undefined);
    }
  }

  return { onStandby, usePrimary };
}
