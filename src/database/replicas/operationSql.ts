/** What one operation reads and writes with: all its reads go to one server, which is the primary once it has written. */

import type { Sql } from '../reader/sql.ts';
import type { Standby } from './standby.ts';

export interface OperationOptions {
  /** How long, in milliseconds, a statement may take. */
  readonly longest: number;
  /**
   * Where the operation reads; undefined for the primary. Asked when the first read comes.
   * @param isAgain whether it was asked before: what is needed since then is known.
   */
  choose(isAgain: boolean): Promise<Standby | undefined>;
  /** Called before anything is asked of the primary: it may have to show first what the viewer has seen elsewhere. */
  readyPrimary(): Promise<void>;
  /** Told of each read that has ended. */
  noteRead(standby: Standby | undefined): void;
  /** Told of each read that failed on a standby. */
  retried(): void;
}

/** A read that fails on a standby after this share of the time that it may take is not tried again on the primary. */
const retryUntil = 0.9;

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
      // There it would take as long.
      if (performance.now() - began > retryUntil * longest) throw error;
      retried();
      choosing = Promise.resolve(undefined);
      return backOnPrimary(use);
    }
  }

  /** Reads on the primary, or on a standby where the primary does not come to show what a standby has shown. */
  async function backOnPrimary<Rows>(use: (sql: Sql) => Promise<Rows>): Promise<Rows> {
    try {
      await readyPrimary();
    } catch (error) {
      // What the operation has written itself is not known of yet.
      const standby = await choose(true);
      if (!standby || hasWritten) throw error;
      choosing = Promise.resolve(standby);
      return onStandby(standby, use);
    }
    return usePrimary(use);
  }

  async function write<Rows>(use: (sql: Sql) => Promise<Rows>): Promise<Rows> {
    // What it reads from here on has to show what it has written.
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

/** Uses of either server that are told of when they have ended. */
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
