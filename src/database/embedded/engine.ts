/**
 * The engine, run until it fails. A PostgreSQL server would start anew after a panic, or after a crash of one of its
 * processes. PGlite stays as it is, and the next message could keep this thread busy for ever: so after a failure the
 * engine is not touched again, and whoever tries gets the failure.
 */

import type { PGlite } from '@electric-sql/pglite';
import { errorText } from '../../errors.ts';
import { type } from './protocol.ts';

/** Hands messages to the engine, whose replies come in pieces that are cut anywhere. */
export type Run = (messages: Uint8Array, onReply: (data: Buffer) => void) => Promise<void>;

export interface Engine {
  readonly run: Run;
  ask<Row>(sql: string, values?: unknown[]): Promise<Row[]>;
  /** Asks several things at once. Gives the rows of each. */
  askAll<Rows extends unknown[]>(sql: readonly string[]): Promise<{ [Each in keyof Rows]: Rows[Each][] }>;
  /** Runs commands on which everything relies: if one does not succeed, the engine has failed. */
  reset(commands: readonly string[]): Promise<void>;
  /** Settles when the engine has failed. */
  readonly failure: Promise<Error>;
  hasFailed(): boolean;
  /** Has the engine fail if there is an obstacle by now. */
  check(): void;
}

/** @param findObstacle is asked before the engine is touched. It gives the reason why it must not be any more. */
export function createEngine(pglite: PGlite, findObstacle: () => Error | undefined): Engine {
  const { fail, failure, failed } = createFailure();
  stopAtExceptions(pglite, fail);

  const check = () => {
    const obstacle = failed() ?? findObstacle();
    if (obstacle) fail(obstacle);
  };
  const assertUsable = () => {
    check();
    const error = failed();
    if (error) throw error;
  };

  return {
    run: (messages, onReply) =>
      pglite.runExclusive(async () => {
        assertUsable();
        try {
          await pglite.execProtocolRawStream(messages, {
            onRawData(data) {
              // What comes from an engine that has failed means nothing.
              if (failed()) return;
              // The piece is in the engine's memory, which its next one overwrites.
              const piece = Buffer.from(data);
              // An error comes in a piece that begins with it.
              if (piece[0] === type('E') && piece.includes(panic)) fail(new Error(messageOf(piece)));
              onReply(piece);
            },
          });
        } catch (error) {
          // An error of a statement would have come as a reply.
          if (!pglite.closed) fail(error instanceof Error ? error : new Error(String(error)));
          throw error;
        }
      }),
    async ask<Row>(sql: string, values?: unknown[]) {
      assertUsable();
      return (await pglite.query<Row>(sql, values)).rows;
    },
    async askAll<Rows extends unknown[]>(sql: readonly string[]) {
      assertUsable();
      const results = await pglite.exec(sql.join(';'));
      // One result for each statement, whose columns the caller knows.
      return results.map(({ rows }) => rows) as { [Each in keyof Rows]: Rows[Each][] };
    },
    async reset(commands) {
      assertUsable();
      try {
        for (const command of commands) await pglite.exec(command);
      } catch (error) {
        if (!pglite.closed) fail(new Error('the session could not be reset', { cause: error }));
        throw error;
      }
    },
    failure,
    hasFailed: () => failed() !== undefined,
    check,
  };
}

/** The first error that the engine failed with, once there is one. */
function createFailure() {
  let first: Error | undefined;
  let settle = (_error: Error) => {};
  const failure = new Promise<Error>((resolve) => {
    settle = resolve;
  });
  const fail = (error: Error) => {
    first ??= error;
    settle(first);
  };
  return { fail, failure, failed: () => first };
}

/** Part of an error after which the state of the engine is unknown: the disk was too full for the write-ahead log, say. */
const panic = Buffer.from('VPANIC\0');

/** With this status PGlite throws what PostgreSQL would jump with to the handling of an error. */
const jump = 100;

/**
 * Has the engine fail by an exception that is not PostgreSQL's own: deep recursion, a function that the engine lacks.
 * PGlite passes over them, though they leave the engine in the middle of what it did.
 */
function stopAtExceptions({ Module }: PGlite, fail: (error: Error) => void): void {
  const loopOnce = Module._PostgresMainLoopOnce;
  Module._PostgresMainLoopOnce = () => {
    try {
      loopOnce();
    } catch (error) {
      // Anything can be thrown.
      if ((error as { status?: unknown } | undefined)?.status === jump) throw error;
      const failure = new Error(`the engine broke off: ${errorText(error)}`, { cause: error });
      fail(failure);
      throw {
        // PGlite catches what is thrown here and looks at this, outside of its `try`: so it gets out of its loop.
        get status() {
          throw failure;
        },
      };
    }
  };
}

/** The text of an error message, for people. */
function messageOf(error: Buffer): string {
  return /\0M([^\0]*)/.exec(error.toString())?.[1] ?? '';
}
