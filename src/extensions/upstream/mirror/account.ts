/** Finds the account of a token of the upstream. */

import { z } from 'zod';
import { type Upstream, unreadable } from '../client/upstream.ts';
import { count, int, name, recordId, text, username } from './fields.ts';
import { firstIssue } from './list.ts';

export type Account = z.output<typeof user>;

/** The id of the token's user. Nothing else of the response has to be valid. */
export const readAccountId = async (upstream: Upstream, signal?: AbortSignal): Promise<number> =>
  (await readMe(z.object({ id: recordId }), upstream, signal)).id;

/**
 * The user of the token. No other operation tells that: a token may also read records of users who are linked with its own.
 * @throws {UpstreamError} if the response does not name the user.
 */
export const identify = (upstream: Upstream, signal?: AbortSignal): Promise<Account> =>
  readMe(user, upstream, signal);

async function readMe<Schema extends z.ZodType>(
  schema: Schema,
  upstream: Upstream,
  signal: AbortSignal | undefined,
): Promise<z.output<Schema>> {
  const { data, error } = schema.safeParse(await upstream.get('/users/me', signal));
  if (error) throw unreadable('/users/me', firstIssue(error));
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
