/**
 * Reads the results of a subscription from its response, for a connection that carries the results of many
 * operations.
 */

import type { StreamedResponse } from '../../http/response.ts';
import { type Reason, ResultsAborted } from './framing.ts';

/** How results ended: in order, stopped by the client, or for a reason that the client should know. */
export type Ending = 'complete' | 'stopped' | Reason;

export interface Reading {
  /** Settles when the last result has been written. */
  readonly ended: Promise<Ending>;
  /** Must be called when the client wants no more results. */
  stop(): void;
}

/** @param write is given the JSON text of each result; the next is made once it has settled. */
export function readResults(
  { stream, ended }: StreamedResponse,
  write: (result: Uint8Array) => Promise<void>,
): Reading {
  const reader = stream?.getReader();
  let isStopped = false;

  // A pending read of a cancelled stream ends at once.
  const cancel = () => void reader?.cancel().catch(() => {});

  async function read(): Promise<Ending> {
    try {
      for (let piece = await reader?.read(); piece && !piece.done; piece = await reader?.read()) {
        if (isStopped) break;
        await write(piece.value);
      }
      return isStopped ? 'stopped' : 'complete';
    } catch (error) {
      if (isStopped) return 'stopped';
      return error instanceof ResultsAborted ? error.reason : 'failed';
    } finally {
      cancel();
      ended();
    }
  }

  return {
    ended: read(),
    stop() {
      isStopped = true;
      cancel();
    },
  };
}
