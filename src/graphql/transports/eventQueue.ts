/** The body of an event stream. Many operations write to it, and one client reads it, which may connect later. */

import { serverSentEvents } from './framing.ts';

/**
 * How many characters may wait to be read before no operation is added (`before`), and before the stream ends
 * (`ever`).
 */
const most = { before: 4 * 1024 * 1024, ever: 16 * 1024 * 1024 };

/** How long, in milliseconds, an event may wait once the client has connected. */
const longest = 30_000;

const encoder = new TextEncoder();

export interface EventQueue {
  readonly body: ReadableStream<Uint8Array>;
  /** Whether so much waits to be read that no operation should be added. */
  isFull(): boolean;
  /** Settles when the client has read the text, or the stream has ended. */
  push(text: string): Promise<void>;
  end(): void;
}

/**
 * @param heartbeat how often, in milliseconds, an empty queue sends a comment, so that the connection is not taken for dead.
 * @param onLeft is called when the client has left, or does not read.
 */
export function createEventQueue(heartbeat: number, onLeft: () => void): EventQueue {
  const waiting: { readonly text: string; readonly since: number; taken(): void }[] = [];
  let size = 0;
  let began = 0;
  let wake = () => {};
  let beat: NodeJS.Timeout | undefined;
  let hasEnded = false;

  function push(text: string): Promise<void> {
    return new Promise((taken) => {
      if (hasEnded) return taken();
      waiting.push({ text, since: performance.now(), taken });
      size += text.length;
      if (size > most.ever) onLeft();
      wake();
    });
  }

  function checkReader(): void {
    const [oldest] = waiting;
    if (!oldest) void push(serverSentEvents.heartbeat);
    else if (performance.now() - Math.max(oldest.since, began) >= longest) onLeft();
  }

  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (!beat && !hasEnded) {
          began = performance.now();
          beat = setInterval(checkReader, heartbeat);
        }
        while (waiting.length === 0 && !hasEnded)
          await new Promise<void>((settle) => {
            wake = settle;
          });
        const next = waiting.shift();
        if (!next) return controller.close();
        size -= next.text.length;
        controller.enqueue(encoder.encode(next.text));
        next.taken();
      },
      cancel: onLeft,
    },
    // `pull` is not called before somebody reads, which is how the queue knows that the client has connected.
    { highWaterMark: 0 },
  );

  void push(serverSentEvents.opening);
  return {
    body,
    isFull: () => size > most.before,
    push,
    end() {
      hasEnded = true;
      clearInterval(beat);
      for (const { taken } of waiting.splice(0)) taken();
      wake();
    },
  };
}
