/**
 * `Dovetail-Position`: what a client knows beyond what this gateway has heard of. A response to a write says how far the
 * database has come with it, and whoever sends that back, to whichever gateway, reads nothing older.
 */

import { LRUCache } from 'lru-cache';
import type { Viewer } from '../auth/viewer.ts';
import { formatPosition, type Position, parsePosition } from '../database/position/lsn.ts';
import { createTakePosition } from '../database/position/primary.ts';
import type { Sql } from '../database/reader/sql.ts';
import { messages } from '../errors.ts';
import { errorResponse } from '../http/errorResponse.ts';
import type { Exchange } from '../http/exchange.ts';
import type { HttpResponse, StreamedResponse } from '../http/response.ts';

export const positionHeader = 'Dovetail-Position';

export interface Positions {
  /** Has the request read nothing older than what its client knows. Undefined for one that says nothing new. */
  receive(exchange: Exchange, viewer: Viewer): Promise<HttpResponse | undefined> | undefined;
  /** Says in the response to a write how far the database has come with it. */
  tell(exchange: Exchange, response: HttpResponse | StreamedResponse): Promise<void>;
}

/** Of how many viewers it is remembered what they know. Of the others it is found out again. */
const maxViewers = 100_000;

/** @param onKnown told of a viewer who knows that something has changed, which may not have been heard of here. */
export function createPositions(sql: Pick<Sql, 'run'>, onKnown: (viewerId: number) => void): Positions {
  const take = createTakePosition(sql);
  /** What is read for each viewer has everything up to here. */
  const reached = new LRUCache<number, { readonly position: Position }>({ max: maxViewers });

  async function reach(viewerId: number, position: Position): Promise<undefined> {
    const written = await take().catch(() => undefined);
    onKnown(viewerId);
    if (!written) return;
    // What was not written yet may become something else. Whoever makes up such a position has their own responses forgotten.
    const most = position < written.position ? position : written.position;
    reached.set(viewerId, { position: most });
  }

  return {
    receive(exchange, viewer) {
      const given = exchange.request.headers['dovetail-position'];
      if (given === undefined) return undefined;
      const position = parsePosition(String(given));
      if (position === undefined) return Promise.resolve(errorResponse(exchange.endpoint, wrong));
      const known = reached.get(viewer.id);
      return known && position <= known.position ? undefined : reach(viewer.id, position);
    },

    async tell(exchange, { status }) {
      // What was rejected has written nothing.
      if (status >= 400) return;
      // The write stands, whether or not the server says where.
      const taken = await take().catch(() => undefined);
      if (taken) exchange.headers[positionHeader] = formatPosition(taken.position);
    },
  };
}

const wrong = { code: 'BAD_USER_INPUT', message: messages.wrongPosition } as const;
