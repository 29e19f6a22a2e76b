/**
 * The account of a token of the upstream, by `/users/me`. No other operation is safe: a token may also read records of users who are
 * linked with its own.
 */

import { z } from 'zod';
import { type Upstream, unreadable } from '../client/upstream.ts';
import { count, firstIssue, int, name, recordId, text, username } from './fields.ts';

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

async function readUser<Schema extends z.ZodType>(
  schema: Schema,
  upstream: Upstream,
  signal?: AbortSignal,
): Promise<z.output<Schema>> {
  const path = '/users/me';
  const { data, error } = schema.safeParse(await upstream.get(path, signal));
  if (error) throw unreadable(path, firstIssue(error));
  return data;
}

/** The account of the token that the client sends. @throws {UpstreamError} if the response does not name it. */
export const readAccount = (upstream: Upstream, signal?: AbortSignal) => readUser(user, upstream, signal);

/** The id of the token's user. Nothing else of the response has to be valid. */
export const readAccountId = async (upstream: Upstream, signal?: AbortSignal): Promise<number> =>
  (await readUser(user.pick({ id: true }), upstream, signal)).id;
