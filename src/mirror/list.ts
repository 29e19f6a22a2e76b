/** Reads a list of an upstream: all of it, even if it changes meanwhile, and never without end. */

import { z } from 'zod';
import { numeric, recordId } from './fields.ts';
import { incomprehensible, type Upstream, UpstreamError } from './upstream.ts';

/** The most that the REST interface gives at once (docs/rest.md#paging). */
const pageSize = 100;

/** No account has a million records of a kind. */
const maxPages = 10_000;

/** How often a list may change under the reader before it gives up. */
const maxRestarts = 3;

export interface Item {
  /** Undefined for an item that does not say, which cannot be a record. */
  readonly id: number | undefined;
  readonly item: unknown;
}

export interface Page {
  readonly items: readonly Item[];
  /** Whether nothing comes after it. */
  readonly isLast: boolean;
}

const listResponse = z.preprocess(
  // A list may come without anything around it.
  (response) => (Array.isArray(response) ? { data: response } : response),
  z.object({
    data: z.array(z.unknown()),
    pagination: z
      .object({ limit: numeric(z.int().min(1)) })
      .optional()
      .catch(undefined),
  }),
);

const identified = z.looseObject({ id: recordId });

/**
 * The items of a list, a page at a time. Each page is asked for from the last record of the one before. If it no longer
 * has that record, some were removed meanwhile and others moved up into pages already read: reading starts over.
 * @param isPaged whether it is known to come in pages. One that is not may come whole, however many are asked for.
 * @throws {UpstreamError} for a response that is no list, or a list that repeats itself or does not end.
 */
export async function* readPages(
  upstream: Upstream,
  path: string,
  signal?: AbortSignal,
  isPaged = true,
): AsyncGenerator<Page> {
  let offset = 0;
  let last: number | undefined;
  let seen = new Set<number>();
  for (let page = 0, restarts = 0; page < maxPages; page++) {
    const response = listResponse.safeParse(
      await upstream.get(`${path}?limit=${pageSize}&offset=${offset}`, signal),
    );
    const most = isPaged || offset > 0 ? pageSize : Number.POSITIVE_INFINITY;
    if (!response.success || response.data.data.length > most)
      throw unreadable(path, `the response is not a list of at most ${pageSize}`);
    const { data, pagination } = response.data;
    const items = data.map((item) => ({ id: identified.safeParse(item).data?.id, item }));

    if (last !== undefined && !items.some(({ id }) => id === last)) {
      if (++restarts > maxRestarts) throw unreadable(path, 'the list keeps changing while it is read');
      offset = 0;
      last = undefined;
      seen = new Set();
      continue;
    }

    // An upstream may give less at once than it was asked for, and says so. What is more is all that there is.
    const isLast =
      items.length > pageSize || items.length < Math.min(pageSize, pagination?.limit ?? pageSize);
    // The next page has to begin with a record that has an id. Items behind the last such record are read again there.
    const end = isLast ? items.length : items.findLastIndex(({ id }) => id !== undefined) + 1 || items.length;
    const fresh = items.slice(0, end).filter(({ id }) => id === undefined || !seen.has(id));
    for (const { id } of fresh) if (id !== undefined) seen.add(id);
    if (fresh.length > 0) yield { items: fresh, isLast };

    if (isLast) return;
    if (fresh.every(({ id }) => id === undefined)) {
      if (!isPaged || items.length < pageSize) return;
      throw unreadable(path, `the list repeats itself at offset ${offset}`);
    }
    last = items[end - 1]?.id;
    offset += end - 1;
  }
  throw unreadable(path, `the list does not end within ${maxPages} pages`);
}

const unreadable = (path: string, why: string) =>
  new UpstreamError(`GET ${path}: ${why}`, { failure: incomprehensible, method: 'GET', route: path });
