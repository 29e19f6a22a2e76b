/**
 * Has the statements of users wait for their turn while the database is busy. A request may run many of them, and many requests may
 * be let through before the first of them gets to the database: without turns, one user's would be in front of everybody else's.
 */

import type { Concurrency } from '../database/concurrency.ts';
import type { Sql } from '../database/reader/sql.ts';
import { longestConnecting } from '../database/session.ts';
import { createFairQueue, type Waiting } from './fairQueue.ts';

export interface StatementTurns {
  /** Runs a user's statement, once it is the user's turn. Rejects if that takes as long as a connection may. */
  run<Result>(userId: number, statement: () => Promise<Result>): Promise<Result>;
  /** How many users have statements that wait. */
  readonly users: number;
  isWaiting(key: Waiting['key']): boolean;
  /** Has as many statements begin as there is room for. Must be called when a connection is free again. */
  serve(): void;
}

interface Entry extends Waiting {
  start(): void;
}

/** How often, in milliseconds, the queue is looked at: no event tells of a connection that could not be made. */
const interval = 5;

export function createStatementTurns(concurrency: Concurrency): StatementTurns {
  const queue = createFairQueue<Entry>();
  let isWatched = false;

  function serve(): void {
    while (queue.entries > 0 && concurrency.free() > 0) queue.take()?.start();
  }

  function watch(): void {
    if (isWatched || queue.entries === 0) return;
    isWatched = true;
    setTimeout(() => {
      isWatched = false;
      serve();
      watch();
    }, interval);
  }

  return {
    serve,
    get users() {
      return queue.clients;
    },
    isWaiting: queue.has,
    run<Result>(key: number, statement: () => Promise<Result>): Promise<Result> {
      if (!queue.has(key) && concurrency.free() > 0) return statement();
      return new Promise((settle, fail) => {
        let isLate = false;
        const late = setTimeout(() => {
          isLate = true;
          fail(new Error('it took too long until it was the turn of the statement'));
        }, longestConnecting);
        const start = () => {
          clearTimeout(late);
          if (!isLate) statement().then(settle, fail);
        };
        queue.add({ key, size: 1, start });
        watch();
      });
    },
  };
}

/** The database as a user's requests have it: its statements wait for the user's turn. */
export function inTurn(sql: Sql, { run }: StatementTurns, userId: number): Sql {
  return {
    findMany: (model, query, given) => run(userId, () => sql.findMany(model, query, given)),
    count: (model, where, given, planning) => run(userId, () => sql.count(model, where, given, planning)),
    run: (text, values, planning) => run(userId, () => sql.run(text, values, planning)),
    write: (text, values) => run(userId, () => sql.write(text, values)),
    writeAndFind: (statement, model, query, given) =>
      run(userId, () => sql.writeAndFind(statement, model, query, given)),
  };
}
