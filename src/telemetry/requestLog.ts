/** Logs requests, and at the level `debug` their statements, without personal data and without anything that a client wrote. */

import { AsyncLocalStorage } from 'node:async_hooks';
import { type DestinationStream, type Logger, pino } from 'pino';
import { requestSpans, statementSpans } from '../channels.ts';
import type { Outcome } from '../http/exchange.ts';

/** The levels of these lines, as pino numbers them. */
const info = 30;
const warn = 40;

/**
 * Makes a function that logs a request that is over, in one line. It composes the line itself, in pino's format: pino's
 * serialisation of each value would cost a cached response more than a tenth of its processor time.
 */
export function createRequestLog(logger: Logger): (outcome: Outcome) => void {
  // pino exports the symbols of its destination and of the fields that each line has, but no types for them.
  const destination = Reflect.get(logger, pino.symbols.streamSym) as DestinationStream;
  const place = Reflect.get(logger, pino.symbols.chindingsSym) as string;
  const tellsCache = logger.isLevelEnabled('debug');
  return ({ exchange, status, duration }) => {
    const level = status !== undefined && status >= 500 ? warn : info;
    if (level < logger.levelVal) return;
    const { id, request, endpoint, operation, transport, errorCode, cache } = exchange;
    let line = `{"level":${level},"time":${Date.now()}${place},"request":${JSON.stringify(id)},"endpoint":"${endpoint}","method":"${request.method ?? ''}"`;
    if (transport !== undefined) line += `,"transport":"${transport}"`;
    if (operation !== undefined) line += `,"operation":${JSON.stringify(operation)}`;
    if (status !== undefined) line += `,"status":${status}`;
    if (errorCode !== undefined) line += `,"code":${JSON.stringify(errorCode)}`;
    line += `,"ms":${inMilliseconds(duration)}`;
    if (cache !== undefined && tellsCache) line += `,"cache":"${cache}"`;
    destination.write(`${line},"msg":"${status === undefined ? 'client left' : 'responded'}"}\n`);
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
