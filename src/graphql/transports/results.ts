/** Reads the results of a subscription, for a transport that carries those of many operations. */

import type { StreamedResponse } from '../../http/response.ts';
import { BrokenOff, type Reason } from './framing.ts';

/** How results came to their end: in order, because nobody wants more of them, or for a reason. */
export type Ending = 'complete' | 'stopped' | Reason;

export interface Reading {
  /** Settles when the last result has been written. */
  readonly ended: Promise<Ending>;
  /** Called when nobody wants more results. */
  stop(): void;
}

/** @param write is given the JSON text of each result; the next is made once it has settled. */
export function readResults(
  { stream, ended }: StreamedResponse,
  write: (result: Uint8Array) => Promise<void>,
): Reading {
  const reader = stream?.getReader();
  let isStopped = false;

  // The pending read of a stream that is cancelled ends at once.
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
      return error instanceof BrokenOff ? error.reason : 'failed';
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
