/**
 * `Dovetail-Position`: reads after writes across gateways. The response to a write carries the position of the database's log
 * after it. A request that sends the position back, to any gateway, reads nothing older.
 *
 * It names the timeline as well. Each promotion of a standby starts a new timeline, possibly before the position that the old
 * primary had reached, so positions of two timelines cannot be compared. A gateway whose primary is on an earlier timeline
 * is still connected to a server that was replaced, and does not have what its client knows.
 */

import { LRUCache } from 'lru-cache';
import type { Viewer } from '../../auth/viewer.ts';
import type { ChangeFeed } from '../../database/feed/changeFeed.ts';
import type { Sql } from '../../database/reader/sql.ts';
import { messages } from '../../errors.ts';
import type { Hooks } from '../../extensionPoints.ts';
import { errorResponse } from '../../http/errorResponse.ts';
import type { Exchange } from '../../http/exchange.ts';
import { atMost } from '../../http/lruLimit.ts';
import type { HttpResponse, StreamedResponse } from '../../http/response.ts';
import { createPositionReader, type PrimaryPosition, parsePosition } from './logPosition.ts';

const positionHeader = 'Dovetail-Position';

type TimelinePosition = Pick<PrimaryPosition, 'timeline' | 'position'>;

/** How many viewers have their reached position remembered. */
const maxViewers = 100_000;

/**
 * @param feed after a loss of the feed, reached positions are forgotten: the primary may have been replaced.
 * @param onKnown called with a viewer who knows of a change that may not have been announced here.
 */
export function createPositions(
  sql: Pick<Sql, 'run'>,
  feed: ChangeFeed,
  onKnown: (viewerId: number) => void,
) {
  const take = createPositionReader(sql);
  /** The position that reads of each viewer are known to include. */
  const reached = new LRUCache<number, TimelinePosition>(atMost(maxViewers));
  feed.subscribe(({ kind }) => {
    if (kind === 'all') reached.clear();
  });

  async function reach({ endpoint }: Exchange, viewerId: number, given: TimelinePosition) {
    const written = await take().catch(() => undefined);
    // A primary that does not respond may be the one that was replaced.
    if (!written || written.timeline < given.timeline)
      return errorResponse(endpoint, behind, { 'Retry-After': '1' });
    onKnown(viewerId);
    reached.set(viewerId, commonOf(given, written));
    return undefined;
  }

  return {
    /** Makes the request read nothing older than the position that it sends. Undefined if there is nothing to wait for. */
    beforeRead(exchange: Exchange, viewer: Viewer): Promise<HttpResponse | undefined> | undefined {
      const given = exchange.request.headers['dovetail-position'];
      if (given === undefined) return undefined;
      const sent = parseTimelinePosition(String(given));
      if (!sent) return Promise.resolve(errorResponse(exchange.endpoint, wrong));
      const known = reached.get(viewer.id);
      return known && includes(known, sent) ? undefined : reach(exchange, viewer.id, sent);
    },

    /** Adds the position after the write to its response. */
    async afterWrite(exchange: Exchange, { status }: HttpResponse | StreamedResponse): Promise<void> {
      // A rejected request has written nothing.
      if (status >= 400) return;
      // The write has succeeded, even if its position cannot be read.
      const taken = await take().catch(() => undefined);
      if (taken) exchange.headers[positionHeader] = `${taken.timeline}-${taken.text}`;
    },
  } satisfies Hooks;
}

/** Whether `reached` covers a position. A later timeline covers all of an earlier one. */
const includes = (reached: TimelinePosition, { timeline, position }: TimelinePosition) =>
  timeline < reached.timeline || (timeline === reached.timeline && position <= reached.position);

/**
 * The given position, but at most that of the primary: what the primary has not written yet may never come. A client that
 * invents a position only loses its own cached responses.
 */
function commonOf(given: TimelinePosition, { timeline, position }: TimelinePosition): TimelinePosition {
  if (given.timeline < timeline) return { timeline, position: 0n };
  return { timeline, position: given.position < position ? given.position : position };
}

function parseTimelinePosition(text: string): TimelinePosition | undefined {
  const [, timeline, lsn = ''] = /^([1-9]\d{0,9})-(.*)$/.exec(text) ?? [];
  const position = parsePosition(lsn);
  return timeline === undefined || position === undefined
    ? undefined
    : { timeline: Number(timeline), position };
}

const behind = { code: 'SERVICE_UNAVAILABLE', message: messages.primaryBehind } as const;
const wrong = { code: 'BAD_USER_INPUT', message: messages.wrongPosition } as const;
