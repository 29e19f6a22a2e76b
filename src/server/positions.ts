/**
 * `Dovetail-Position`: what a client knows beyond what this gateway has heard of. A response to a write says how far the
 * database has come with it, and whoever sends that back, to whichever gateway, reads nothing older.
 *
 * It names the timeline as well, which each promotion of a standby begins anew: a new primary may have begun before the
 * position that the one before it had come to, so that positions of two timelines say nothing of each other. A gateway
 * whose primary is on an earlier timeline is still at a server that was replaced, and does not have what its client knows.
 */

import { LRUCache } from 'lru-cache';
import type { Viewer } from '../auth/viewer.ts';
import type { ChangeFeed } from '../database/feed/changeFeed.ts';
import { formatPosition, parsePosition } from '../database/position/lsn.ts';
import { createPositionReader, type PrimaryPosition } from '../database/position/primary.ts';
import type { Sql } from '../database/reader/sql.ts';
import { messages } from '../errors.ts';
import { errorResponse } from '../http/errorResponse.ts';
import type { Exchange } from '../http/exchange.ts';
import { atMost } from '../http/lruLimit.ts';
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

/**
 * @param feed where it may have missed something, everything may have become something else, even what was reached.
 * @param onKnown told of a viewer who knows that something has changed, which may not have been heard of here.
 */
export function createPositions(
  sql: Pick<Sql, 'run'>,
  feed: ChangeFeed,
  onKnown: (viewerId: number) => void,
): Positions {
  const take = createPositionReader(sql);
  /** What is read for each viewer has everything up to here. */
  const reached = new LRUCache<number, PrimaryPosition>(atMost(maxViewers));
  feed.subscribe(({ kind }) => {
    if (kind === 'all') reached.clear();
  });

  async function reach({ endpoint }: Exchange, viewerId: number, given: PrimaryPosition) {
    const written = await take().catch(() => undefined);
    // Where the primary is not known, it may be the one that was replaced.
    if (!written || written.timeline < given.timeline)
      return errorResponse(endpoint, behind, { 'Retry-After': '1' });
    onKnown(viewerId);
    reached.set(viewerId, commonOf(given, written));
    return undefined;
  }

  return {
    receive(exchange, viewer) {
      const given = exchange.request.headers['dovetail-position'];
      if (given === undefined) return undefined;
      const place = parsePlace(String(given));
      if (!place) return Promise.resolve(errorResponse(exchange.endpoint, wrong));
      const known = reached.get(viewer.id);
      return known && includes(known, place) ? undefined : reach(exchange, viewer.id, place);
    },

    async tell(exchange, { status }) {
      // What was rejected has written nothing.
      if (status >= 400) return;
      // The write stands, whether or not the server says where.
      const taken = await take().catch(() => undefined);
      if (taken) exchange.headers[positionHeader] = formatPlace(taken);
    },
  };
}

/** Whether who has reached the one has everything up to the other: of earlier timelines there is no more than a later one has. */
const includes = (reached: PrimaryPosition, { timeline, position }: PrimaryPosition) =>
  timeline < reached.timeline || (timeline === reached.timeline && position <= reached.position);

/**
 * What is reached of the position that was given by whoever reads up to what is written: what was not written yet may
 * become something else. Whoever makes up such a position has their own responses forgotten.
 */
function commonOf(given: PrimaryPosition, { timeline, position }: PrimaryPosition): PrimaryPosition {
  if (given.timeline < timeline) return { timeline, position: 0n };
  return { timeline, position: given.position < position ? given.position : position };
}

const formatPlace = ({ timeline, position }: PrimaryPosition) => `${timeline}-${formatPosition(position)}`;

function parsePlace(text: string): PrimaryPosition | undefined {
  const [, timeline, lsn = ''] = /^([1-9]\d{0,9})-(.*)$/.exec(text) ?? [];
  const position = parsePosition(lsn);
  return timeline === undefined || position === undefined
    ? undefined
    : { timeline: Number(timeline), position };
}

const behind = { code: 'SERVICE_UNAVAILABLE', message: messages.primaryBehind } as const;
const wrong = { code: 'BAD_USER_INPUT', message: messages.wrongPosition } as const;
