/** The body of an event stream: written by many operations, and read by one client, who may come later. */

import { serverSentEvents } from './framing.ts';

/** How many characters may wait to be read before there are no more operations, and before the stream is ended. */
const most = { before: 4 * 1024 * 1024, ever: 16 * 1024 * 1024 };

/** How long, in milliseconds, an event may wait for its reader, once there is one. */
const longest = 30_000;

const encoder = new TextEncoder();

export interface EventQueue {
  readonly body: ReadableStream<Uint8Array>;
  /** Whether so much waits that there should be nothing new. */
  isFull(): boolean;
  /** Settles when the text was taken, or never will be. */
  push(text: string): Promise<void>;
  end(): void;
}

/**
 * @param heartbeat how often, in milliseconds, a queue that is empty says that it is there.
 * @param onLeft called when the client has left, or does not read.
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
    // Nothing is taken before it is asked for: the stream begins with its reader.
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
