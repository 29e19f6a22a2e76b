/** Reads messages in a worker: the process that started it reads the log for all of its workers. */

import { randomUUID } from 'node:crypto';
import type { ReadMessages } from './slot.ts';
import type { FromParent, FromWorker } from './workerFeedServer.ts';

export const readMessages: ReadMessages = (_, hear, lost) => {
  const reader = randomUUID();
  const tell = (what: FromWorker['feed']) => process.send?.({ feed: what, reader } satisfies FromWorker);
  return new Promise((settle, fail) => {
    function read(message: Partial<FromParent>): void {
      if (message.reader !== reader) return;
      if (message.feed === 'opened') settle();
      else if (message.feed === 'lost')
        lost.abort(message.why === undefined ? undefined : new Error(message.why));
      else for (const [transaction, payload] of message.messages ?? []) hear(transaction, payload);
    }
    process.on('message', read);
    lost.signal.addEventListener(
      'abort',
      () => {
        process.off('message', read);
        tell('close');
        fail(new Error('the process that reads the log has lost it'));
      },
      { once: true },
    );
    tell('open');
  });
};
