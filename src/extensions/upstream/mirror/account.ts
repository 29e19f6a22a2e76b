/** The account of a token of the upstream. */

import { z } from 'zod';
import { getOptional, type Upstream, UpstreamError, unreadable } from '../client/upstream.ts';
import { count, firstIssue, int, name, recordId, text, username } from './fields.ts';
import { readPages } from './list.ts';

export const user = z.object({
  id: recordId,
  username,
  accountType: name.nullish(),
  subscriptionTier: name.nullish(),
  league: count,
  rank: count,
  totalPoints: int.nullish(),
  matchPoints: int.nullish(),
  profileImage: text.nullish(),
  profileDescription: text.nullish(),
  profileTitle: text.nullish(),
  dttTotalReps: count,
  dttTotalSessions: count,
});

export type Account = z.output<typeof user>;

/**
 * The user of the token, by `/users/me`. An upstream with the documented operations only has no such path. Then the records tell
 * whose a token of the settings is. Those of clients are never guessed: a token may also read records of users who are linked with its own.
 */
async function readUser<Schema extends z.ZodType>(
  schema: Schema,
  upstream: Upstream,
  signal?: AbortSignal,
): Promise<z.output<Schema>> {
  const path = '/users/me';
  const response = upstream.isConfigured
    ? ((await getOptional(upstream, path, signal)) ?? (await readOwner(upstream, signal)))
    : await upstream.get(path, signal);
  const { data, error } = schema.safeParse(response);
  if (error) throw unreadable(path, firstIssue(error));
  return data;
}

/** The owner of records that the token can read. */
async function readOwner(upstream: Upstream, signal?: AbortSignal): Promise<unknown> {
  const asked = new Set<number>();
  for (const path of ['/dtt', '/dtt/templates']) {
    // The first page is enough.
    const { value } = await readPages(upstream, path, signal).next();
    for (const { item } of value?.items ?? []) {
      const { ownerId } = z.object({ ownerId: recordId }).safeParse(item).data ?? {};
      if (ownerId === undefined || asked.has(ownerId)) continue;
      asked.add(ownerId);
      // A list may also have imported templates, but the token cannot read their owners.
      const owner = await getOptional(upstream, `/users/${ownerId}`, signal);
      if (owner !== undefined) return owner;
    }
  }
  throw new UpstreamError(
    'The upstream does not tell whose account it is: it does not have /users/me, and no trainer or template names its owner.',
    { failure: 'does not tell whose account it is' },
  );
}

/** The account of the token that the client sends. @throws {UpstreamError} if the response does not name it. */
export const readAccount = (upstream: Upstream, signal?: AbortSignal) => readUser(user, upstream, signal);

/** The id of the token's user. Nothing else of the response has to be valid. */
export const readAccountId = async (upstream: Upstream, signal?: AbortSignal): Promise<number> =>
  (await readUser(user.pick({ id: true }), upstream, signal)).id;
