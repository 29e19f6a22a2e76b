/** Logs one line for each request, without personal data and without anything that a client wrote. */

import { type Logger, pino } from 'pino';
import type { Outcome } from '../http/exchange.ts';
import type { LineWriter } from './logBlocks.ts';

/** The levels of these lines, as pino numbers them. */
const info = 30;
const warn = 40;

/**
 * Makes a function that logs an outcome. It composes the line itself, in pino's format: pino's serialisation of each value
 * takes longer than many a request.
 */
export function createRequestLog(logger: Logger): (outcome: Outcome) => void {
  // pino exports the symbols of its destination and of the fields that each line has, but no types for them.
  const destination = Reflect.get(logger, pino.symbols.streamSym) as Pick<LineWriter, 'write'> &
    Partial<LineWriter>;
  const place = Reflect.get(logger, pino.symbols.chindingsSym) as string;

  // In blocks even at the level `warn`: a gateway that sheds requests by the thousand must not write each line by itself.
  // Unexpected errors have lines of their own, which are written at once.
  const write = (destination.writeInBlock ?? destination.write).bind(destination);

  return ({ exchange, status, duration }) => {
    const level = status !== undefined && status >= 500 ? warn : info;
    if (level < logger.levelVal) return;
    const { id, request, endpoint, operation, transport, errorCode, cache } = exchange;
    const method = request.method ?? '';
    let line = `{"level":${level},"time":${Date.now()}${place},"request":${JSON.stringify(id)},"endpoint":"${endpoint}","method":"${method}"`;
    if (transport !== undefined) line += `,"transport":"${transport}"`;
    if (operation !== undefined) line += `,"operation":${JSON.stringify(operation)}`;
    if (status !== undefined) line += `,"status":${status}`;
    if (errorCode !== undefined) line += `,"code":${JSON.stringify(errorCode)}`;
    line += `,"ms":${Math.round(duration * 100) / 100}`;
    if (cache !== undefined && logger.isLevelEnabled('debug')) line += `,"cache":"${cache}"`;
    write(`${line},"msg":"${status === undefined ? 'client left' : 'responded'}"}\n`);
  };
}
