/** Fetches one record by its id, or says what is wrong with it. */

import type { z } from 'zod';
import { isMissing, type Upstream, UpstreamRejection } from '../upstream/upstream.ts';
import type { Kind, MirrorRecord } from './records.ts';

/** How many records are fetched at the same time. */
export const concurrency = 4;

/**
 * A record by its id, or what is wrong with it. Undefined if the upstream does not have it.
 * @param listed what the list says of it: only the list may have some of its fields.
 * @throws {UpstreamError} when the upstream cannot be used.
 */
export async function fetchRecord(
  upstream: Upstream,
  kind: Kind,
  id: number,
  signal?: AbortSignal,
  listed?: unknown,
): Promise<MirrorRecord | string | undefined> {
  try {
    const data = await upstream.get(`${kind.list}/${id}`, signal);
    // Null means that there is no such record.
    if (data === null) return undefined;
    const whole = isObject(data) && isObject(listed) ? { ...listed, ...data } : data;
    const { data: record, error } = kind.record.safeParse(whole);
    if (record?.row.id === id) return record;
    return record ? `id: is ${record.row.id}` : firstIssue(error);
  } catch (error) {
    if (isMissing(error)) return undefined;
    if (!(error instanceof UpstreamRejection)) throw error;
    return `it responded with ${error.status}`;
  }
}

const isObject = (value: unknown) => typeof value === 'object' && value !== null;

/** The first issue, with the path of the field that it is about. */
export function firstIssue(error: z.ZodError | undefined): string {
  const [issue] = error?.issues ?? [];
  if (!issue) return 'is not valid';
  return issue.path.length > 0 ? `${issue.path.join('.')}: ${issue.message}` : issue.message;
}
