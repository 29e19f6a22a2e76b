/**
 * Runs the engine until it fails. A PostgreSQL server restarts after a panic, or after a crash of one of its processes.
 * PGlite does not, and the next message could keep this thread busy for ever. So after a failure the engine is not used
 * again, and each attempt fails with the same error.
 */

import type { PGlite } from '@electric-sql/pglite';
import { errorText } from '../../errors.ts';
import { type } from './protocol.ts';

export interface Engine {
  /** Passes complete messages to the engine, and returns its replies. */
  run(messages: Uint8Array): Promise<Buffer>;
  /** Aborted, with the error, when the engine has failed. */
  readonly failed: AbortSignal;
  /** Makes the engine fail if `findObstacle` returns an error. */
  check(): void;
}

/** @param findObstacle is called before each use of the engine. It returns an error if the engine must not be used any more. */
export function createEngine(pglite: PGlite, findObstacle: () => Error | undefined): Engine {
  // Its first reason stays.
  const failure = new AbortController();
  const failed = failure.signal;
  const fail = (error: Error) => failure.abort(error);
  stopAtExceptions(pglite, fail);

  const check = () => {
    const obstacle = findObstacle();
    if (obstacle) fail(obstacle);
  };

  async function run(messages: Uint8Array): Promise<Buffer> {
    check();
    failed.throwIfAborted();
    const pieces: Buffer[] = [];
    try {
      await pglite.execProtocolRawStream(messages, {
        onRawData(data) {
          // Copied, since the next piece overwrites this one in the memory of the engine.
          const piece = Buffer.from(data);
          // An error message is always at the beginning of a piece.
          if (piece[0] === type('E') && piece.includes(panic)) fail(new Error(messageOf(piece)));
          pieces.push(piece);
        },
      });
    } catch (error) {
      // An error of a statement comes as a reply, so this is a failure of the engine.
      if (!pglite.closed) fail(error instanceof Error ? error : new Error(String(error)));
      throw error;
    }
    // Replies of an engine that has failed are not passed on.
    failed.throwIfAborted();
    return Buffer.concat(pieces);
  }

  return { run: (messages) => pglite.runExclusive(() => run(messages)), failed, check };
}

/** Part of the error message of a panic, after which the state of the engine is unknown, as when the disk is full. */
const panic = Buffer.from('VPANIC\0');

/** The status of the exception that PGlite throws in place of the `longjmp` with which PostgreSQL handles an error. */
const jump = 100;

/**
 * Makes the engine fail on an exception that is not PostgreSQL's own, such as a stack overflow or a missing function.
 * PGlite ignores such exceptions, though they leave the engine in an undefined state.
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
        // PGlite catches this object and reads its status outside of its `try`. The getter throws, which ends its loop.
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
