/** Finds out whose account it is that the token of an upstream opens. */

import { z } from 'zod';
import { getOptional, type Upstream, UpstreamError, unreadable } from '../upstream/upstream.ts';
import { firstIssue } from './fetchRecord.ts';
import { recordId, replaceInvalid } from './fields.ts';
import { readPages } from './list.ts';
import { user as userSchema } from './user.ts';

/** The account's row, and notes about values that the mirror replaces because they made no sense. */
type IdentifiedAccount = ReturnType<typeof replaceInvalid<z.output<typeof userSchema>>>;
export type Account = IdentifiedAccount['row'];

/** Ids of records to ask for where the upstream does not list them. */
export interface Named {
  readonly lkbxDevices?: readonly number[];
  readonly lockTemplates?: readonly number[];
  readonly lockSessions?: readonly number[];
}

/** Finds out whose account the token of an upstream opens. */
export type IdentifyAccount = (
  upstream: Upstream,
  named?: Named,
  signal?: AbortSignal,
) => Promise<IdentifiedAccount>;

/** The id of the token's user. Nothing else of the response has to be valid. */
export async function readAccountId(upstream: Upstream, signal?: AbortSignal): Promise<number> {
  const { data, error } = z.object({ id: recordId }).safeParse(await upstream.get('/users/me', signal));
  if (data) return data.id;
  throw unreadable('/users/me', firstIssue(error));
}

/**
 * The user of the token, by `/users/me`. Where many users have tokens, no other operation will do: a token may also read
 * records of users who are linked with its own.
 * @throws {UpstreamError} when the response does not say.
 */
export const identifyByUsersMe: IdentifyAccount = async (upstream, _named, signal) =>
  parseAccount('/users/me', await upstream.get('/users/me', signal));

/**
 * The user of the token, by any operation that tells.
 * @param named records that may name their owner.
 * @throws {UpstreamError} when none tells.
 */
export const identifyByAnyRoute: IdentifyAccount = async (upstream, named, signal) => {
  const whole = await getOptional(upstream, '/users/me', signal);
  if (whole !== undefined) return parseAccount('/users/me', whole);
  const users = z
    .object({ data: z.array(z.unknown()) })
    .safeParse(await getOptional(upstream, '/users', signal));
  if (users.data?.data.length === 1) return parseAccount('/users', users.data.data[0]);

  // A list may also have imported templates, but the token cannot read their owners: the one that it can read is its user.
  for (const owner of await ownersOfRecords(upstream, named, signal)) {
    const path = `/users/${owner}`;
    const found = await getOptional(upstream, path, signal);
    if (found !== undefined) return parseAccount(path, found);
  }
  throw new UpstreamError(
    'The upstream does not tell whose account it is: it has neither /users/me nor /users, and no record names its owner. ' +
      'Name a record with --lkbx, --lock-template or --lock-session.',
    { failure: 'does not tell whose account it is' },
  );
};

async function ownersOfRecords(
  upstream: Upstream,
  named: Named = {},
  signal?: AbortSignal,
): Promise<Set<number>> {
  const owners = new Set<number>();
  const addOwner = (record: unknown) => {
    const owner = z.object({ ownerId: recordId }).safeParse(record).data?.ownerId;
    if (owner !== undefined) owners.add(owner);
  };
  for (const path of ['/dtt', '/dtt/templates']) {
    for await (const { items } of readPages(upstream, path, signal)) {
      for (const { item } of items) addOwner(item);
      // The first page is enough.
      break;
    }
  }
  if (owners.size > 0) return owners;
  const paths = [
    ...(named.lkbxDevices ?? []).map((id) => `/lkbx/${id}`),
    ...(named.lockTemplates ?? []).map((id) => `/lkbx/templates/${id}`),
    ...(named.lockSessions ?? []).map((id) => `/lkbx/sessions/${id}`),
  ];
  for (const path of paths) addOwner(await getOptional(upstream, path, signal));
  return owners;
}

function parseAccount(path: string, data: unknown): IdentifiedAccount {
  const { data: account, error } = userSchema.safeParse(data);
  if (!account) throw unreadable(path, firstIssue(error));
  return replaceInvalid(account, `${path}: `);
}
