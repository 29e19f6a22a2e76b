/** Reads a list of an upstream page by page, whole, also while it changes; and never without end. */

import { z } from 'zod';
import { recordId } from './records.ts';
import { type Upstream, UpstreamError } from './upstream.ts';

/** The most that the interface gives at once (interface, Limits). */
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

const listResponse = z.object({
  data: z.array(z.unknown()).max(pageSize),
  pagination: z
    .object({ limit: z.int().min(1) })
    .optional()
    .catch(undefined),
});

const identified = z.looseObject({ id: recordId });

/**
 * The pages of a list. Each begins with the record that the one before ended with, for if it does not, records
 * were removed meanwhile, others have moved up into pages already read, and reading starts over.
 * @throws {UpstreamError} for a response that is no list, or a list that repeats itself or does not end.
 */
export async function* readPages(
  upstream: Upstream,
  path: string,
  signal?: AbortSignal,
): AsyncGenerator<Item[]> {
  let offset = 0;
  let last: number | undefined;
  let seen = new Set<number>();
  for (let page = 0, restarts = 0; page < maxPages; page++) {
    const response = listResponse.safeParse(
      await upstream.get(`${path}?limit=${pageSize}&offset=${offset}`, signal),
    );
    if (!response.success)
      throw new UpstreamError(`GET ${path}: the answer is not a list of at most ${pageSize}`);
    const { data, pagination } = response.data;
    const items = data.map((item) => ({ id: identified.safeParse(item).data?.id, item }));

    if (last !== undefined && !items.some(({ id }) => id === last)) {
      if (++restarts > maxRestarts)
        throw new UpstreamError(`GET ${path}: the list keeps changing while it is read`);
      offset = 0;
      last = undefined;
      seen = new Set();
      continue;
    }

    // An upstream may give less at once than it was asked for, and says so.
    const isLast = items.length < Math.min(pageSize, pagination?.limit ?? pageSize);
    // The next page begins with a record that says which it is, and has once more what comes behind it here.
    const end = isLast ? items.length : items.findLastIndex(({ id }) => id !== undefined) + 1 || items.length;
    const fresh = items.slice(0, end).filter(({ id }) => id === undefined || !seen.has(id));
    for (const { id } of fresh) if (id !== undefined) seen.add(id);
    if (fresh.length > 0) yield fresh;

    if (isLast) return;
    if (fresh.every(({ id }) => id === undefined)) {
      if (items.length < pageSize) return;
      throw new UpstreamError(`GET ${path}: the list repeats itself at offset ${offset}`);
    }
    last = items[end - 1]?.id;
    offset += end - 1;
  }
  throw new UpstreamError(`GET ${path}: the list does not end within ${maxPages} pages`);
}
