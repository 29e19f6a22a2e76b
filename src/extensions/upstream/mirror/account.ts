/** Finds the account of a token of the upstream. */

import { z } from 'zod';
import { getOptional, type Upstream, UpstreamError, unreadable } from '../client/upstream.ts';
import { count, int, name, recordId, text, username } from './fields.ts';
import { firstIssue, readPages } from './list.ts';

export type Account = z.output<typeof user>;

/** Finds the account of the token that the upstream client sends. */
export type IdentifyAccount = (upstream: Upstream, signal?: AbortSignal) => Promise<Account>;

/** The id of the token's user. Nothing else of the response has to be valid. */
export async function readAccountId(upstream: Upstream, signal?: AbortSignal): Promise<number> {
  return parsed('/users/me', z.object({ id: recordId }), await upstream.get('/users/me', signal)).id;
}

/**
 * The user of the token, by `/users/me`. If many users have tokens, no other operation is safe: a token may also read records of
 * users who are linked with its own.
 * @throws {UpstreamError} if the response does not name the user.
 */
export const identifyByUsersMe: IdentifyAccount = async (upstream, signal) =>
  parsed('/users/me', user, await upstream.get('/users/me', signal));

/**
 * The user of the token, by `/users/me`, or else by the owner of a record: the interface documents only `/users/{id}`.
 * @throws {UpstreamError} if neither names the user.
 */
export const identifyByAnyRoute: IdentifyAccount = async (upstream, signal) => {
  const me = await getOptional(upstream, '/users/me', signal);
  if (me !== undefined) return parsed('/users/me', user, me);
  // A list may also have imported templates, but the token cannot read their owners. The owner that it can read is its user.
  for (const owner of await ownersOfRecords(upstream, signal)) {
    const path = `/users/${owner}`;
    const found = await getOptional(upstream, path, signal);
    if (found !== undefined) return parsed(path, user, found);
  }
  throw new UpstreamError(
    'The upstream does not tell whose account it is: it does not have /users/me, and no trainer or template names its owner.',
    { failure: 'does not tell whose account it is' },
  );
};

async function ownersOfRecords(upstream: Upstream, signal?: AbortSignal): Promise<Set<number>> {
  const owners = new Set<number>();
  for (const path of ['/dtt', '/dtt/templates']) {
    // The first page is enough.
    const { value } = await readPages(upstream, path, signal).next();
    for (const { item } of value?.items ?? []) {
      const owned = z.object({ ownerId: recordId }).safeParse(item).data;
      if (owned) owners.add(owned.ownerId);
    }
  }
  return owners;
}

function parsed<Schema extends z.ZodType>(path: string, schema: Schema, response: unknown): z.output<Schema> {
  const { data, error } = schema.safeParse(response);
  if (error) throw unreadable(path, firstIssue(error));
  return data;
}

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
