/** Limits the requests to the upstream that clients wait for. Those that do not begin soon are never sent. */

import pLimit from 'p-limit';
import { UpstreamBusy } from './upstream.ts';

/** How many reads of an account may be in flight, and how many more may wait; and how many writes. */
const ofAccount = { inFlight: 16, waiting: 200 };

/** The same for all accounts together. */
const ofAll = { read: 100, write: 50, waiting: 200 };

/** How many connections these requests may have open. */
export const mostOnDemand = ofAll.read + ofAll.write;

/**
 * Sends a request of an account when it is its turn.
 * @throws {UpstreamBusy} if too many requests wait already, or if it has waited for too long: then it was not sent.
 */
export type InTurn = <Result>(kind: 'read' | 'write', send: () => Promise<Result>) => Promise<Result>;

/**
 * Returns a function that makes the turns of an account.
 * @param longestWait in milliseconds.
 */
export function createTurns(longestWait = 5_000): () => InTurn {
  const all = { read: pLimit(ofAll.read), write: pLimit(ofAll.write) };
  return () => {
    const own = { read: pLimit(ofAccount.inFlight), write: pLimit(ofAccount.inFlight) };
    return (kind, send) =>
      new Promise((resolve, reject) => {
        const giveUp = () =>
          reject(new UpstreamBusy('Too many requests wait', { failure: 'has too many requests' }, 1));
        if (own[kind].pendingCount >= ofAccount.waiting || all[kind].pendingCount >= ofAll.waiting)
          return giveUp();
        const wait = AbortSignal.timeout(longestWait);
        wait.addEventListener('abort', giveUp);
        const begin = async () => {
          wait.throwIfAborted();
          wait.removeEventListener('abort', giveUp);
          return send();
        };
        own[kind](() => all[kind](begin)).then(resolve, reject);
      });
  };
}
