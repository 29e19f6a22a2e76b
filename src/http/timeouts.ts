/** How long the server waits for clients. */

/** Times in milliseconds. */
export interface Timeouts {
  /** For the whole head of a request. */
  readonly head: number;
  /** For the whole request. */
  readonly request: number;
  /** For anything at all, in either direction. */
  readonly silence: number;
  /** For the next request. */
  readonly idle: number;
  /** For a request that is still on its way, or a response that is not read, when the gateway closes. */
  readonly closing: number;
}

export const timeouts: Timeouts = {
  head: 10_000,
  request: 30_000,
  silence: 120_000,
  // Longer than the idle timeout of most proxies (60 s), so that the proxy closes the connection first: a request that is sent
  // while the gateway closes the connection is lost, and one that writes must not be repeated.
  idle: 75_000,
  closing: 5_000,
};
