/**
 * Prisma's client for the requests of a gateway, over its pool. It is loaded at its first use, since it takes 20 MB and its engine
 * another 50. No other module of a gateway imports `client.ts`.
 */

import { AsyncLocalStorage } from 'node:async_hooks';
import type pg from 'pg';
import { statementSpans } from '../channels.ts';
import type { PrismaClient } from './generated/prisma/client.ts';
import type { ModelName, ViewerRef } from './models.ts';
import { type ScopedClient, scopedTo } from './scope/scope.ts';
import { longestConnecting } from './session.ts';
import { retryOnConflict } from './transaction.ts';
import type { RunInTurn } from './turns.ts';

/** The connection of a transaction. */
interface Held {
  connection?: pg.PoolClient;
}

/**
 * @param fail throws the error of a statement, or another in its place. Prisma would say too little about a connection that is lost.
 * @param incomplete models whose rows may be missing here, which the client does not read.
 */
export function createClients(
  pool: pg.Pool,
  fail: (error: unknown) => never,
  incomplete: readonly ModelName[] = [],
) {
  const held = new AsyncLocalStorage<Held>();
  let client: Promise<PrismaClient> | undefined;

  function load(): Promise<PrismaClient> {
    client ??= import('./client.ts').then(({ openClient }) => openClient(watched));
    return client;
  }

  const watched = watchPool(pool, fail, (connection) => {
    const transaction = held.getStore();
    if (transaction) transaction.connection = connection;
  });

  return {
    /** The client of a viewer. Each operation waits for its turn, and so does each transaction as a whole. */
    of(viewer: ViewerRef, run: RunInTurn): ScopedClient {
      let loaded: Promise<ScopedClient> | undefined;
      const use: Use = async (operation) => {
        loaded ??= load().then((client) => scopedTo(client, viewer, incomplete));
        const client = await loaded;
        return run(() => operation(client));
      };
      return deferred(use);
    },

    /**
     * Runs a transaction, and repeats it once after a conflict with another one.
     * @param run also gets the connection of the transaction, for SQL that Prisma cannot express.
     */
    async transact<Result>(
      viewer: ViewerRef,
      run: (client: Pick<ScopedClient, 'apiToken'>, connection: pg.PoolClient) => Promise<Result>,
    ): Promise<Result> {
      const scoped = scopedTo(await load(), viewer, incomplete);
      const attempt = () => {
        const transaction: Held = {};
        return held.run(transaction, () =>
          scoped.$transaction(async (client) => {
            if (!transaction.connection) throw new Error('the transaction has no connection');
            return run(client, transaction.connection);
          }, limits),
        );
      };
      return retryOnConflict(attempt);
    },
  };
}

/**
 * A pool for Prisma's client, with the connections of another, whose statements are watched.
 * @param fail is called with the error of each statement, and throws it or another one.
 * @param connected is called with each connection that is taken for a transaction.
 */
export function watchPool(
  pool: pg.Pool,
  fail: (error: unknown) => never,
  connected: (connection: pg.PoolClient) => void = () => {},
): pg.Pool {
  /** The same object with other methods. */
  const watch = <Target extends pg.Pool | pg.PoolClient>(
    target: Target,
    others: PropertyDescriptorMap = {},
  ): Target =>
    Object.create(target, {
      ...others,
      query: {
        value(query: string | pg.QueryConfig) {
          const send = () => target.query(query);
          const text = typeof query === 'string' ? query : query.text;
          return (statementSpans.hasSubscribers ? statementSpans.tracePromise(send, { text }) : send()).catch(
            fail,
          );
        },
      },
    });
  return watch(pool, {
    connect: {
      async value() {
        const connection = await pool.connect().catch(fail);
        connected(connection);
        return watch(connection);
      },
    },
  });
}

/** Connecting and each statement have deadlines of their own, whose errors say more. */
const limits = { isolationLevel: 'ReadCommitted', maxWait: 2 * longestConnecting, timeout: 60_000 } as const;

type Use = <Result>(operation: (client: ScopedClient) => Promise<Result>) => Promise<Result>;

/** A client whose operations are carried out by another one, which may not be loaded yet. Each name stands for all of its kind. */
function deferred(use: Use): ScopedClient {
  const delegate = (name: 'user') =>
    new Proxy(
      {},
      { get: (_, operation: 'count') => (args: object) => use((client) => client[name][operation](args)) },
    );
  const method =
    (name: '$transaction') =>
    (...given: Parameters<ScopedClient['$transaction']>) =>
      use((client) => client[name](...given));
  return new Proxy({} as ScopedClient, {
    // Pothos asks for the delegate of a model in this way.
    has: () => true,
    get: (_, name) =>
      String(name).startsWith('$') ? method(name as '$transaction') : delegate(name as 'user'),
  });
}
