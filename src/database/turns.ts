/**
 * Turns, so that no user delays all others: for the database and, by the queues at the end of this file, for the processor.
 *
 * Load shedding is one fair queue, by user, before a bounded number of statements. At most as many statements run at once as there
 * are connections. The others wait, and users take turns: a user who sends a thousand requests mostly waits for their own
 * statements. A request may begin unless too many wait already. Once it has begun, it is never rejected, and each of its statements
 * gets its turn. A statement with a turn has a connection at once. To replace it: use the queue of the connection pool, which has
 * neither users nor a bound.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { unserved } from '../errors.ts';
import type { Sql } from './reader/sql.ts';
import { longestConnecting } from './session.ts';

/** The id of a user, or the address of a client whose user is not known yet. An address has no statements. */
type QueueKey = number | string;

/** Runs a statement when it is the user's turn. Rejects with a 503 if that takes longer than a connection may take. */
export type RunInTurn = <Result>(statement: () => Promise<Result>) => Promise<Result>;

export type Turns = ReturnType<typeof createTurns>;

/** For `lasts` ms after the queue was empty, `factor` times as many requests may wait: a short burst is no overload. */
const burst = { lasts: 100, factor: 3 };

/** Overload ends this many milliseconds after the last request was rejected. */
const overloadLasts = 1_000;

/**
 * How many requests may wait under overload: a share of the connections, and the least number. A longer queue would delay every
 * request without serving more of them. This one is just long enough to keep all connections busy.
 */
const shortQueue = { share: 0.75, least: 3 };

/**
 * @param connections how many statements may run at once.
 * @param maxWaiting how many requests may have waiting statements before others are rejected.
 */
export function createTurns(connections: number, maxWaiting: number) {
  const requests = createFairQueue();
  const live = createFairQueue();
  const shortest = Math.min(Math.max(connections * shortQueue.share, shortQueue.least), maxWaiting);
  let running = 0;
  let isTurnOfLive = false;
  /** For the metrics: the number of requests with waiting statements, and how many requests were rejected. */
  const figures = {
    get waiting() {
      return requests.waiting();
    },
    rejected: 0,
  };
  let lastRejection = Number.NEGATIVE_INFINITY;

  async function start<Result>(statement: () => Promise<Result>): Promise<Result> {
    running++;
    try {
      return await statement();
    } finally {
      running--;
      serve();
    }
  }

  /** Starts waiting statements while there is room. If both wait, requests and live queries alternate. */
  function serve(): void {
    while (running < connections) {
      const [first, second] = isTurnOfLive ? [live, requests] : [requests, live];
      const begin = first.take() ?? second.take();
      if (!begin) return;
      isTurnOfLive = !isTurnOfLive;
      begin();
    }
  }

  function runnerBy(queue: FairQueue, user: QueueKey): RunInTurn {
    const request = { waiting: 0 };
    return (statement) => {
      // While there is room, no statement waits.
      if (running < connections) return start(statement);
      return new Promise((settle, fail) => {
        let isLate = false;
        const late = setTimeout(() => {
          isLate = true;
          fail(unserved('tooBusy'));
        }, longestConnecting);
        queue.add(user, request, () => {
          clearTimeout(late);
          if (!isLate) start(statement).then(settle, fail);
        });
      });
    };
  }

  return {
    /** Lets a request begin, or counts it as rejected. @returns whether it may begin. */
    admit(user: QueueKey): boolean {
      const now = performance.now();
      const usual = now - requests.lastEmpty() < burst.lasts ? maxWaiting * burst.factor : maxWaiting;
      const most = now - lastRejection < overloadLasts ? shortest : usual;
      const { own, others } = requests.sharesOf(user);
      // A user with less than an equal share of the queue may begin also while it is full.
      if (requests.waiting() < most || own < Math.floor(most / (others + 1))) return true;
      lastRejection = now;
      figures.rejected++;
      return false;
    },
    /** Makes the runner for the statements of one request. Call it for each request. */
    forRequest: (user: QueueKey) => runnerBy(requests, user),
    /** The same for a live query. Its statements alternate with those of requests, and cause no rejections. */
    forLiveQuery: (user: QueueKey) => runnerBy(live, user),
    figures,
  };
}

/** A request, and how many of its statements wait. */
interface Request {
  waiting: number;
}

/** The waiting statements of a user, the oldest first, and how many requests they belong to. */
interface Line {
  readonly user: QueueKey;
  readonly entries: { readonly request: Request; begin(): void }[];
  requests: number;
}

type FairQueue = ReturnType<typeof createFairQueue>;

/** Waiting statements. Each user has a line of their own, and these are served in turn (fair queueing, as in RFC 8290). */
function createFairQueue() {
  /** The line whose turn is next comes first. */
  const lines = new Map<QueueKey, Line>();
  let waiting = 0;
  let lastEmpty = 0;

  return {
    /** When it was empty last. */
    lastEmpty: () => lastEmpty,
    waiting: () => waiting,
    /** How many requests of the user have waiting statements, and how many other users have any. */
    sharesOf(user: QueueKey) {
      const line = lines.get(user);
      return { own: line?.requests ?? 0, others: lines.size - (line ? 1 : 0) };
    },
    add(user: QueueKey, request: Request, begin: () => void): void {
      if (lines.size === 0) lastEmpty = performance.now();
      const line = lines.get(user) ?? { user, entries: [], requests: 0 };
      lines.set(user, line);
      line.entries.push({ request, begin });
      if (request.waiting++ > 0) return;
      line.requests++;
      waiting++;
    },
    /** Removes the oldest statement of the user whose turn it is, and returns the function that begins it. */
    take(): (() => void) | undefined {
      const [line] = lines.values();
      const entry = line?.entries.shift();
      if (!line || !entry) return undefined;
      // Moves the line to the end.
      lines.delete(line.user);
      if (line.entries.length > 0) lines.set(line.user, line);
      if (--entry.request.waiting === 0) {
        line.requests--;
        waiting--;
      }
      return entry.begin;
    },
  };
}

/** The SQL interface with runners of its statements, such as one that lets each wait for its turn. */
export function withRunner(sql: Sql, run: RunInTurn, runWrite = run): Sql {
  return {
    findMany: (...given) => run(() => sql.findMany(...given)),
    count: (...given) => run(() => sql.count(...given)),
    run: (...given) => run(() => sql.run(...given)),
    write: (...given) => runWrite(() => sql.write(...given)),
  };
}

/** How long a user rests at most, in milliseconds. */
const longestRest = 1_000;

/** A queue for each user, where work is followed by a rest as long: a user keeps the processor busy for half of the time at most. */
export const createUserQueue = () => createKeyedQueue<number>((took) => sleep(Math.min(took, longestRest)));

/**
 * A queue for each key, so that one client cannot keep the processor busy for all others. Work of the same key runs one after the
 * other, and work of different keys concurrently.
 * @param pause settles when the next work of the key may begin. Called with the milliseconds that the last work took.
 */
export function createKeyedQueue<Key>(pause: (took: number) => Promise<unknown>) {
  /** Settles when the work that was added last for a key is done, and its pause is over. */
  const last = new Map<Key, Promise<unknown>>();
  return <Result>(key: Key, work: () => Promise<Result>): Promise<Result> => {
    let began = 0;
    const running = Promise.resolve(last.get(key)).then(() => {
      began = performance.now();
      return work();
    });
    const over = running
      .catch(() => {})
      .then(() => pause(performance.now() - began))
      .then(() => {
        if (last.get(key) === over) last.delete(key);
      });
    last.set(key, over);
    return running;
  };
}
