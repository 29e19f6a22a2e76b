/**
 * Lets users take turns with their statements while the database is busy. A request may run many statements, and many requests
 * may be let through before the first statement of any of them: without turns, the statements of one user would all run before
 * those of everybody else.
 */

import type { Concurrency } from '../database/concurrency.ts';
import type { Sql } from '../database/reader/sql.ts';
import { longestConnecting } from '../database/session.ts';
import { createFairQueue, type FairQueue, type Waiting } from './fairQueue.ts';

export interface Turns {
  /** Runs a statement when it is the user's turn. Rejects if the turn takes as long to come as a connection may. */
  run<Result>(userId: number, statement: () => Promise<Result>): Promise<Result>;
}

/** The turns of the statements of requests. */
export interface StatementTurns extends Turns {
  /** The turns of the statements of live queries. They begin without a request, so that there may be ever more of them. */
  readonly live: Turns;
  /** The number of users with waiting statements of requests. */
  readonly users: number;
  /** Whether statements of requests of the user wait. */
  isWaiting(key: Waiting['key']): boolean;
  /** How many statements wait, those of live queries included. */
  readonly length: number;
  /**
   * Starts as many waiting statements as there is room for. Must be called when a connection has become free.
   * @returns whether any was started.
   */
  serve(): boolean;
}

interface Entry extends Waiting {
  start(): void;
}

/** How often, in milliseconds, the queue is checked as well: there is no event for a connection that could not be opened. */
const interval = 5;

export function createStatementTurns(concurrency: Concurrency): StatementTurns {
  const queue = createFairQueue<Entry>();
  const live = createFairQueue<Entry>();
  const length = () => queue.length + live.length;
  let isTurnOfLive = false;
  let isWatched = false;

  /** Takes a statement of a request and one of a live query in turn, where both wait. */
  function take(): Entry | undefined {
    const [first, second] = isTurnOfLive ? [live, queue] : [queue, live];
    isTurnOfLive = !isTurnOfLive;
    return first.take() ?? second.take();
  }

  function serve(): boolean {
    const before = length();
    while (length() > 0 && concurrency.free() > 0) take()?.start();
    return length() < before;
  }

  function watch(): void {
    if (isWatched || length() === 0) return;
    isWatched = true;
    setTimeout(() => {
      isWatched = false;
      serve();
      watch();
    }, interval);
  }

  return {
    ...createTurns(queue, concurrency, watch),
    live: createTurns(live, concurrency, watch),
    serve,
    get users() {
      return queue.clients;
    },
    get length() {
      return length();
    },
    isWaiting: queue.has,
  };
}

/** @param onWaiting called when a statement begins to wait. */
function createTurns(queue: FairQueue<Entry>, concurrency: Concurrency, onWaiting: () => void): Turns {
  return {
    run<Result>(key: number, statement: () => Promise<Result>): Promise<Result> {
      if (!queue.has(key) && concurrency.free() > 0) return statement();
      return new Promise((settle, fail) => {
        let isLate = false;
        const late = setTimeout(() => {
          isLate = true;
          fail(new Error('the statement waited too long for its turn'));
        }, longestConnecting);
        const start = () => {
          clearTimeout(late);
          if (!isLate) statement().then(settle, fail);
        };
        queue.add({ key, size: 1, start });
        onWaiting();
      });
    },
  };
}

/** The database for a user, whose statements wait for the user's turn. */
export function inTurn(sql: Sql, { run }: Turns, userId: number): Sql {
  return {
    findMany: (model, query, given) => run(userId, () => sql.findMany(model, query, given)),
    count: (model, where, given, planning) => run(userId, () => sql.count(model, where, given, planning)),
    run: (text, values, planning) => run(userId, () => sql.run(text, values, planning)),
    write: (text, values) => run(userId, () => sql.write(text, values)),
    writeAndFind: (statement, model, query, given) =>
      run(userId, () => sql.writeAndFind(statement, model, query, given)),
  };
}
