/**
 * Prisma's client for the requests of a gateway, over its pool. It is loaded at its first use, since it takes 20 MB and its engine
 * another 50. No other module of a gateway imports `client.ts`.
 */

import type pg from 'pg';
import { statementSpans } from '../channels.ts';
import type { PrismaClient } from './generated/prisma/client.ts';
import type { ModelName, ViewerRef } from './models.ts';
import { type ScopedClient, scopedTo } from './scope/scope.ts';
import type { RunInTurn } from './turns.ts';

/**
 * @param fail throws the error of a statement, or another in its place. Prisma would say too little about a connection that is lost.
 * @param incomplete models whose rows may be missing here, which the client does not read.
 * @returns a function that makes the client of a viewer. Each of its operations waits for its turn.
 */
export function createClients(
  pool: pg.Pool,
  fail: (error: unknown) => never,
  incomplete: readonly ModelName[] = [],
) {
  let client: Promise<PrismaClient> | undefined;
  return (viewer: ViewerRef, run: RunInTurn): ScopedClient => {
    let loaded: Promise<ScopedClient> | undefined;
    return deferred(async (operation) => {
      client ??= import('./client.ts').then(({ openClient }) => openClient(watchPool(pool, fail)));
      loaded ??= client.then((each) => scopedTo(each, viewer, incomplete));
      const scoped = await loaded;
      return run(() => operation(scoped));
    });
  };
}

/**
 * A pool for Prisma's client, with the connections of another, whose statements are watched.
 * @param fail is called with the error of each statement, and throws it or another one.
 */
export function watchPool(pool: pg.Pool, fail: (error: unknown) => never): pg.Pool {
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
      value: async () => watch(await pool.connect().catch(fail)),
    },
  });
}

type Use = <Result>(operation: (client: ScopedClient) => Promise<Result>) => Promise<Result>;

/** A client whose operations are carried out by another one, which may not be loaded yet. Each name stands for all of its kind. */
function deferred(use: Use): ScopedClient {
  const delegate = (name: 'user') =>
    new Proxy(
      {},
      { get: (_, operation: 'count') => (args: object) => use((client) => client[name][operation](args)) },
    );
  return new Proxy({} as ScopedClient, {
    // Pothos asks for the delegate of a model in this way.
    has: () => true,
    get: (_, name) => delegate(name as 'user'),
  });
}
