/** The streams of subscriptions, of which each user may have a limited number open. */

import type { StreamedResponse } from '../http/response.ts';

export interface Streams {
  /** A response that streams what Yoga's does; undefined when the user has `most` open already. */
  open(userId: number, reply: Response): StreamedResponse | undefined;
}

/** @param most for each user: every change of a user's data is work for each of their subscriptions. */
export function createStreams(most: number): Streams {
  /** How many each user has open. */
  const open = new Map<number, number>();

  function ended(userId: number): void {
    const left = (open.get(userId) ?? 1) - 1;
    if (left > 0) open.set(userId, left);
    else open.delete(userId);
  }

  return {
    open(userId, { status, headers, body }) {
      const count = open.get(userId) ?? 0;
      if (count >= most) return undefined;
      open.set(userId, count + 1);
      return {
        status,
        // Yoga says `none` of its streams, which is no encoding that there is (RFC 9110, section 8.4.1).
        headers: Object.fromEntries(
          [...headers].filter(([name]) => name.toLowerCase() !== 'content-encoding'),
        ),
        stream: body,
        ended: () => ended(userId),
      };
    },
  };
}
