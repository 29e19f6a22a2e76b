/** Reads lists and single records of an upstream. Notices if a list changes meanwhile, and stops even if a list never ends. */

import { z } from 'zod';
import {
  AnotherAccount,
  isMissing,
  type Upstream,
  UpstreamBusy,
  UpstreamError,
  UpstreamRejection,
  unreadable,
} from '../client/upstream.ts';
import { numeric, recordId } from './fields.ts';
import { parseRecord } from './kinds.ts';
import type { Kind, MirrorRecord } from './rows.ts';

/** The largest page of the REST interface (docs/rest.md#paging). */
const pageSize = 100;

/** No account has a million records of a kind. */
const maxPages = 10_000;

export interface Item {
  /** Undefined for an item without a valid id, which cannot be a record. */
  readonly id: number | undefined;
  readonly item: unknown;
}

const listResponse = z.preprocess(
  // A list may come as a bare array.
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
 * Yields the items of a list, a page at a time. Each page begins with the last record of the page before. If that record is
 * missing, records were removed meanwhile and others have moved up into pages that were read already.
 * @param isPaged whether the list is known to come in pages. Another list may come whole, whatever the limit is.
 * @throws {UpstreamError} for a response that is no list, or a list that changes so, repeats itself or does not end.
 */
export async function* readPages(
  upstream: Upstream,
  path: string,
  signal?: AbortSignal,
  isPaged = true,
): AsyncGenerator<{ readonly items: readonly Item[]; readonly isLast: boolean }> {
  let offset = 0;
  let last: number | undefined;
  const seen = new Set<number>();
  for (let page = 0; page < maxPages; page++) {
    const response = listResponse.safeParse(
      await upstream.get(`${path}?limit=${pageSize}&offset=${offset}`, signal),
    );
    const most = isPaged || offset > 0 ? pageSize : Number.POSITIVE_INFINITY;
    if (!response.success || response.data.data.length > most)
      throw unreadable(path, `the response is not a list of at most ${pageSize}`);
    const { data, pagination } = response.data;
    const items = data.map((item) => ({ id: identified.safeParse(item).data?.id, item }));
    if (last !== undefined && !items.some(({ id }) => id === last))
      throw unreadable(path, 'the list has changed while it was read');

    // An upstream may have a lower limit, and state it in `pagination`. A response with more than a page is the whole list.
    const isLast =
      items.length > pageSize || items.length < Math.min(pageSize, pagination?.limit ?? pageSize);
    const fresh = items.filter(({ id }) => id === undefined || !seen.has(id));
    for (const { id } of fresh) if (id !== undefined) seen.add(id);
    if (fresh.length > 0) yield { items: fresh, isLast };

    if (isLast) return;
    if (fresh.every(({ id }) => id === undefined)) {
      if (!isPaged || items.length < pageSize) return;
      throw unreadable(path, `the list repeats itself at offset ${offset}`);
    }
    last = items.at(-1)?.id;
    offset += items.length - (last === undefined ? 0 : 1);
  }
  throw unreadable(path, `the list does not end within ${maxPages} pages`);
}

export const concurrency = 4;

/**
 * A record by its id, or a text about what is wrong with it. Undefined if the upstream does not have it.
 * @throws {UpstreamError} when the upstream cannot be used.
 */
export async function fetchRecord(
  upstream: Upstream,
  kind: Kind,
  id: number,
  accountId: number,
  signal?: AbortSignal,
): Promise<MirrorRecord | string | undefined> {
  try {
    const data = await upstream.get(`${kind.list}/${id}`, signal);
    // Null means that there is no such record.
    if (data === null) return undefined;
    const record = parseRecord(kind.record, kind, data, accountId);
    if (typeof record === 'string') return record;
    if (record.row.id !== id) return `id: is ${record.row.id}`;
    const listedDigest = kind.summary?.safeParse(data).data?.row.listedDigest;
    return { ...record, row: { ...record.row, listedDigest } };
  } catch (error) {
    if (isMissing(error)) return undefined;
    if (!(error instanceof UpstreamRejection)) throw error;
    return `it responded with ${error.status}`;
  }
}

/** Whether an error concerns the whole run, and not only the record that was fetched. */
export const endsRun = (error: unknown): boolean =>
  !(error instanceof UpstreamError) || error instanceof UpstreamBusy || error instanceof AnotherAccount;
