/** A body that is sent piece by piece as text: the results of a live read, with heartbeats between them. */

import { ReadableStream } from 'node:stream/web';

/** How often, in milliseconds, a stream without results sends a heartbeat, which shows both sides that the connection is alive. */
const heartbeatInterval = 12_000;

interface TextFormat<Result> {
  /** Sent at once. Some browsers hand a response to a page only once its body has begun. */
  readonly opening: string;
  readonly heartbeat: string;
  write(result: Result): string;
  /**
   * The last piece. @param error with which the results have ended; undefined if they have ended in order.
   * @throws if the body has to break off.
   */
  end(error: unknown): string;
}

/** The next result is made when the client has read the one before. */
export function createTextStream<Result>(
  results: Pick<AsyncIterator<Result>, 'next' | 'return'>,
  { opening, heartbeat, write, end }: TextFormat<Result>,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let beat: NodeJS.Timeout | undefined;

  return new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(encoder.encode(opening));
      beat = setInterval(() => {
        // A client that has not read what was sent needs no heartbeat.
        if ((controller.desiredSize ?? 0) > 0) controller.enqueue(encoder.encode(heartbeat));
      }, heartbeatInterval);
    },
    async pull(controller) {
      let failure: unknown;
      try {
        const { done, value } = await results.next();
        if (!done) return controller.enqueue(encoder.encode(write(value)));
      } catch (error) {
        failure = error;
      }
      clearInterval(beat);
      controller.enqueue(encoder.encode(end(failure)));
      controller.close();
    },
    cancel() {
      clearInterval(beat);
      void results.return?.();
    },
  });
}
