import type { Exchange } from '../../http/exchange.ts';

/**
 * Ends an exchange whose response is not sent by HTTP.
 * @param status the status for the log; undefined for a client that left before there was one.
 */
export function endExchange({ response }: Exchange, status: number | undefined): void {
  if (status !== undefined && !response.headersSent) response.writeHead(status);
  response.emit('close');
}
