/** The body of an event stream: written by many operations, and read by one client, who may come later. */

import { serverSentEvents } from './framing.ts';

export interface EventQueue {
  readonly body: ReadableStream<Uint8Array>;
  /** Settles when the text was taken, or never will be. */
  push(text: string): Promise<void>;
  end(): void;
}

/**
 * @param heartbeat how often, in milliseconds, a queue that is empty says that it is there.
 * @param onLeft called when the client has left.
 */
export function createEventQueue(heartbeat: number, onLeft: () => void): EventQueue {
  const encoder = new TextEncoder();
  const waiting: { readonly text: string; taken(): void }[] = [];
  let wake = () => {};
  let beat: NodeJS.Timeout | undefined;
  let hasEnded = false;

  function push(text: string): Promise<void> {
    return new Promise((taken) => {
      if (hasEnded) return taken();
      waiting.push({ text, taken });
      wake();
    });
  }

  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        beat ??= setInterval(() => {
          if (waiting.length === 0) void push(serverSentEvents.heartbeat);
        }, heartbeat);
        while (waiting.length === 0 && !hasEnded)
          await new Promise<void>((settle) => {
            wake = settle;
          });
        const next = waiting.shift();
        if (!next) return controller.close();
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
    push,
    end() {
      hasEnded = true;
      clearInterval(beat);
      for (const { taken } of waiting.splice(0)) taken();
      wake();
    },
  };
}
