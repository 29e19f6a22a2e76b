/** Logs requests, and at the level `debug` their statements, without personal data and without anything that a client wrote. */

import { AsyncLocalStorage } from 'node:async_hooks';
import type { Logger } from 'pino';
import { requestSpans, statementSpans } from '../channels.ts';
import type { Outcome } from '../http/exchange.ts';

/** Makes a function that logs a request that is over, in one line. */
export function createRequestLog(logger: Logger): (outcome: Outcome) => void {
  const tellsCache = logger.isLevelEnabled('debug');
  return ({ exchange, status, duration }) => {
    const entry = {
      request: exchange.id,
      endpoint: exchange.endpoint,
      method: exchange.request.method,
      transport: exchange.transport,
      operation: exchange.operation,
      status,
      code: exchange.errorCode,
      ms: inMilliseconds(duration),
      cache: tellsCache ? exchange.cache : undefined,
    };
    if (status === undefined) logger.info(entry, 'client left');
    else if (status < 500) logger.info(entry, 'responded');
    else logger.warn(entry, 'responded');
  };
}

/** Logs every statement of a request from now on, until it is closed: its text and duration, without values. */
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
      const entry = {
        request: current.getStore(),
        sql: message.text.replace(/\s+/g, ' ').trim(),
        ms: inMilliseconds(performance.now() - (began.get(message) ?? Number.NaN)),
        ...(message.error !== undefined && { failed: true }),
      };
      logger.debug(entry, 'statement');
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

const inMilliseconds = (duration: number) => Math.round(duration * 100) / 100;
