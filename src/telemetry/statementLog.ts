/** Logs the statements of requests at the level `debug`: their texts and durations, without values. */

import { AsyncLocalStorage } from 'node:async_hooks';
import type { Logger } from 'pino';
import { requestSpans, statementSpans } from '../channels.ts';

/** Logs every statement from now on, until it is closed. */
export function logStatements(logger: Logger): { close(): Promise<void> } {
  /** The id of the request whose code is running. */
  const current = new AsyncLocalStorage<string>();
  const began = new WeakMap<object, number>();
  requestSpans.start.bindStore(current, ({ exchange }) => exchange.id);
  const listeners = {
    start(message: object) {
      began.set(message, performance.now());
    },
    end() {},
    asyncStart() {},
    asyncEnd(message: { text: string; error?: unknown }) {
      const duration = performance.now() - (began.get(message) ?? Number.NaN);
      logger.debug(
        {
          request: current.getStore(),
          sql: message.text.replace(/\s+/g, ' ').trim(),
          ms: Math.round(duration * 100) / 100,
          ...(message.error !== undefined && { failed: true }),
        },
        'statement',
      );
    },
    error() {},
  };
  statementSpans.subscribe(listeners);
  return {
    async close() {
      requestSpans.start.unbindStore(current);
      statementSpans.unsubscribe(listeners);
    },
  };
}
