/** The one line that the log has of each request: nothing that a client wrote, nothing of a person. */

import { type Logger, pino } from 'pino';
import type { Outcome } from '../http/exchange.ts';
import type { LineWriter } from './logBlocks.ts';

/** The lowest levels there are lines of, as pino numbers them. */
const info = 30;
const warn = 40;

/**
 * What writes the line of an outcome. It is put together here, as pino would: for pino to look at each value takes longer
 * than many a request.
 */
export function createRequestLog(logger: Logger): (outcome: Outcome) => void {
  // Where pino writes to, and what it has of the process in each line: it has names for both, but no types.
  const destination = Reflect.get(logger, pino.symbols.streamSym) as Pick<LineWriter, 'write'> &
    Partial<LineWriter>;
  const place = Reflect.get(logger, pino.symbols.chindingsSym) as string;

  // A gateway that turns requests away by the thousand must not wait for a line of each. What fails has a line of its own.
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
