/** Ends connections whose server is silent while a statement runs. */

import type { Socket } from 'node:net';
import type pg from 'pg';

/** The members of a client of `pg` that its types leave out or describe more generally. */
interface ConnectedClient {
  readonly connection: { readonly stream: Socket };
  /** False while a statement runs. */
  readonly readyForQuery: boolean;
}

/**
 * Ends the connection, and fails its statement, if the server sends nothing for so many milliseconds while a statement runs. The
 * only timer is that of the socket. The option `query_timeout` of `pg` has a timer for each statement and wraps its callback,
 * after which the objects of requests survive minor garbage collections: that took a tenth of the processor time of a small read.
 * @param client connected already, since its socket is replaced when it begins TLS.
 */
export function endWhenSilent(client: pg.ClientBase, longest: number): void {
  const connected = client as unknown as ConnectedClient;
  const { stream } = connected.connection;
  // Not by the argument of `setTimeout`, which is called once: the time may pass while no statement runs.
  stream.setTimeout(longest).on('timeout', () => {
    // The message is that of `pg`: see `isUnresponsive`.
    if (!connected.readyForQuery) stream.destroy(new Error('Query read timeout'));
  });
}
