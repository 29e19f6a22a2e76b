/** What one operation reads and writes with: all its reads go to one server, which is the primary once it has written. */

import type { Sql } from '../reader/sql.ts';
import type { Standby } from './standby.ts';

export interface OperationOptions {
  /** How long, in milliseconds, a statement may take. */
  readonly longest: number;
  /** Where the operation reads; undefined for the primary. Asked when the first read comes. */
  choose(): Promise<Standby | undefined>;
  /** Called before anything is asked of the primary: it may have to show first what the viewer has seen elsewhere. */
  readyPrimary(): Promise<void>;
  /** Told of each read that has ended. */
  hasRead(standby: Standby | undefined): void;
  /** Told of each read that failed on a standby. */
  retried(): void;
}

/** So much of the time that a statement may take is too much to begin again. */
const tooLate = 0.9;

export function createOperationSql(
  primary: Sql,
  { longest, choose, readyPrimary, hasRead, retried }: OperationOptions,
): Sql {
  let choosing: Promise<Standby | undefined> | undefined;

  async function read<Rows>(use: (sql: Sql) => Promise<Rows>): Promise<Rows> {
    choosing ??= choose();
    const standby = await choosing;
    if (!standby) return onPrimary(use);
    const began = performance.now();
    try {
      const rows = await use(standby.sql);
      hasRead(standby);
      return rows;
    } catch (error) {
      standby.failed(error);
      // There it would take as long.
      if (performance.now() - began > tooLate * longest) throw error;
      retried();
      choosing = Promise.resolve(undefined);
      return onPrimary(use);
    }
  }

  async function onPrimary<Rows>(use: (sql: Sql) => Promise<Rows>): Promise<Rows> {
    await readyPrimary();
    try {
      return await use(primary);
    } finally {
      hasRead(undefined);
    }
  }

  function write<Rows>(use: (sql: Sql) => Promise<Rows>): Promise<Rows> {
    // What it reads from here on has to show what it has written.
    choosing = Promise.resolve(undefined);
    return onPrimary(use);
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
