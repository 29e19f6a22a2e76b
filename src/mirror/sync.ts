/** One run of the synchronisation: learns whose account it is, and brings the mirror to what the upstream has. */

import type pg from 'pg';
import { z } from 'zod';
import { add, type Mirror, openMirror } from './mirror.ts';
import { readPages } from './pages.ts';
import { emptyTally, firstIssue, type PullOptions, pull, type Tally } from './pull.ts';
import { type Kind, kindsOf, recordId, user as userSchema } from './records.ts';
import { isMissing, isNotOffered, type Upstream, UpstreamError } from './upstream.ts';

export interface SyncOptions {
  readonly pool: pg.Pool;
  readonly upstream: Upstream;
  /** Whether to read everything again, rather than sessions until they are known. */
  readonly full?: boolean;
  /** Ids of records to ask for where the upstream does not list them. */
  readonly named?: Named;
  readonly signal?: AbortSignal;
  readonly listener?: SyncListener;
  /** As in `MirrorOptions`. */
  readonly lease?: number;
}

export interface Named {
  readonly lkbxDevices?: readonly number[];
  readonly lockTemplates?: readonly number[];
  readonly lockSessions?: readonly number[];
}

/** Follows a run while it goes on. */
export interface SyncListener {
  /** @param expected how many there may be in the end, where there is an idea of it. */
  advanced?(kind: string, fetched: number, expected?: number): void;
  finished?(kind: string, tally: Tally): void;
}

export interface SyncReport {
  readonly account: Account;
  readonly tallies: ReadonlyMap<string, Tally>;
  /** What was left out and why: operations that the upstream does not offer, and the first few bad records. */
  readonly notes: readonly string[];
  /** How many requests it took. */
  readonly requests: number;
}

export type Account = z.output<typeof userSchema>;

/** How many bad records are reported one by one. */
const maxReports = 20;

/**
 * Brings the mirror to what the upstream has, or returns undefined while another run is at it.
 * @throws {UpstreamError} when the upstream cannot be used, {SetupError} when the database cannot.
 */
export async function sync(options: SyncOptions): Promise<SyncReport | undefined> {
  const { pool, upstream, named, lease } = options;
  const before = upstream.requestCount();
  // The first failure ends the run, and with it the other requests under way.
  const end = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, end.signal]) : end.signal;
  try {
    const account = await learnAccount(upstream, named, signal);
    const mirror = await openMirror({ pool, source: upstream.base, account, ...(lease && { lease }) });
    if (!mirror) return undefined;
    try {
      const result = await pullAll({ ...options, signal }, mirror, account);
      return { ...result, account, requests: upstream.requestCount() - before };
    } finally {
      await mirror.release();
    }
  } finally {
    end.abort();
  }
}

/** The user whose token it is, by whichever operation tells. */
async function learnAccount(upstream: Upstream, named?: Named, signal?: AbortSignal): Promise<Account> {
  const whole = await optional(upstream.get('/users/me', signal));
  if (whole !== undefined) return parseAccount('/users/me', whole);
  const users = z
    .object({ data: z.array(z.unknown()) })
    .safeParse(await optional(upstream.get('/users', signal)));
  if (users.data?.data.length === 1) return parseAccount('/users', users.data.data[0]);

  // Only the account's own user can be read, so the owner of an imported template is no concern.
  for (const owner of await ownersOfRecords(upstream, named, signal)) {
    const path = `/users/${owner}`;
    const found = await optional(upstream.get(path, signal));
    if (found !== undefined) return parseAccount(path, found);
  }
  throw new UpstreamError(
    'The upstream does not tell whose account it is: it has neither /users/me nor /users, and no record names its owner. ' +
      'Name a record with --lkbx, --lock-template or --lock-session.',
  );
}

async function ownersOfRecords(
  upstream: Upstream,
  named: Named = {},
  signal?: AbortSignal,
): Promise<Set<number>> {
  const owners = new Set<number>();
  const note = (record: unknown) => {
    const owner = z.object({ ownerId: recordId }).safeParse(record).data?.ownerId;
    if (owner !== undefined) owners.add(owner);
  };
  for (const path of ['/dtt', '/dtt/templates']) {
    for await (const page of readPages(upstream, path, signal)) {
      for (const { item } of page) note(item);
      break;
    }
  }
  const paths = [
    ...(named.lkbxDevices ?? []).map((id) => `/lkbx/${id}`),
    ...(named.lockTemplates ?? []).map((id) => `/lkbx/templates/${id}`),
    ...(named.lockSessions ?? []).map((id) => `/lkbx/sessions/${id}`),
  ];
  for (const path of owners.size > 0 ? [] : paths) note(await optional(upstream.get(path, signal)));
  return owners;
}

function parseAccount(path: string, data: unknown): Account {
  const { data: account, error } = userSchema.safeParse(data);
  if (!account) throw new UpstreamError(`GET ${path}: ${firstIssue(error)}`);
  return account;
}

/** Undefined for what the upstream does not have: the operation, or the record. */
async function optional(response: Promise<unknown>): Promise<unknown> {
  try {
    return await response;
  } catch (error) {
    if (isNotOffered(error) || isMissing(error)) return undefined;
    throw error;
  }
}

const identified = z.object({ id: recordId });

async function pullAll(
  { upstream, full = false, named = {}, signal, listener }: SyncOptions & { signal: AbortSignal },
  mirror: Mirror,
  account: Account,
): Promise<Pick<SyncReport, 'tallies' | 'notes'>> {
  const kinds = kindsOf(account.id);
  const tallies = new Map<string, Tally>();
  const absent: string[] = [];
  const skipped: string[] = [];
  let skips = 0;
  const context = {
    upstream,
    mirror,
    full,
    signal,
    onAbsent: (line: string) => absent.push(line),
    onSkipped: (where: string, why: string) => {
      if (++skips <= maxReports) skipped.push(`${where}: ${why}; skipped.`);
    },
  };

  await pullUser();
  await pullKind(kinds.dttDevices);
  await pullTemplates();
  await pullKind(kinds.lkbxDevices, { idsWithoutList: async () => named.lkbxDevices ?? [] });
  await pullLocks();
  await pullKind(kinds.ossmDevices);
  await pullSessions();

  if (skips > maxReports) skipped.push(`… and ${skips - maxReports} more; skipped.`);
  return { tallies, notes: [...absent, ...skipped] };

  async function pullUser(): Promise<void> {
    const tally = tallyOf('user');
    add(tally, await mirror.writeUser(account));
    tally.fetched++;
    listener?.finished?.('user', tally);
  }

  /** Templates, and which of them is the active one. */
  async function pullTemplates(): Promise<void> {
    const before = await mirror.activeTemplate();
    const active = new Set<number>();
    const whole = await pullKind(kinds.dttTemplates, {
      onListed: ({ row, isActive }) => isActive && active.add(row.id),
    });
    // Two are active only if one was activated while the list was read. The next run will tell.
    const [id = null] = active;
    if (active.size > 1 || (id === null && !whole)) return;
    if (await mirror.setActiveTemplate(id, before)) countChange(kinds.dttTemplates);
  }

  /** Lock templates and sessions, and which template the active session was started from. */
  async function pullLocks(): Promise<void> {
    const template = await activeLockTemplate();
    await pullKind(kinds.lockTemplates, {
      idsWithoutList: async () => [...(named.lockTemplates ?? []), ...(template?.id ? [template.id] : [])],
    });
    await pullKind(kinds.lockSessions, {
      async idsWithoutList() {
        const current = identified.safeParse(await optional(upstream.get('/lkbx/session/current', signal)));
        return [...(named.lockSessions ?? []), ...(current.data ? [current.data.id] : [])];
      },
    });
    // The response does not say which session it is about: another one may have been started since the first.
    if (!template || template.id !== (await activeLockTemplate())?.id) return;
    if (await mirror.setActiveLockTemplate(template.id)) countChange(kinds.lockSessions);
  }

  async function activeLockTemplate(): Promise<{ id: number | null } | undefined> {
    const response = await optional(upstream.get('/lkbx/templates/active', signal));
    return response === null ? { id: null } : identified.safeParse(response).data;
  }

  /**
   * Sessions, newest first. Reading stops at a page of which everything is known, if everything behind it is
   * known as well: a run that was cut off leaves a gap behind what it had read.
   */
  async function pullSessions(): Promise<void> {
    const mayStop = mirror.sessionsComplete && !full;
    let complete = mirror.sessionsComplete;
    const whole = await pullKind(kinds.dttSessions, {
      async onPage(changed) {
        if (changed === 0) return mayStop;
        if (complete) await mirror.setSessionsComplete(false);
        complete = false;
        return false;
      },
    });
    if (whole !== complete) await mirror.setSessionsComplete(whole);
  }

  async function pullKind(
    kind: Kind,
    options: Omit<PullOptions, 'tally' | 'onAdvanced'> = {},
  ): Promise<boolean> {
    const tally = tallyOf(kind.name);
    const expected = kind === kinds.dttSessions ? account.dttTotalSessions : undefined;
    const onAdvanced = () => listener?.advanced?.(kind.name, tally.fetched, expected);
    const whole = await pull(context, kind, { ...options, tally, onAdvanced });
    listener?.finished?.(kind.name, tally);
    return whole;
  }

  /** Makes a change count that no record of its own stands for, unless it came along with one that changed. */
  function countChange({ name }: Kind): void {
    const tally = tallyOf(name);
    if (tally.unchanged === 0 || tally.created + tally.updated > 0) return;
    tally.unchanged--;
    tally.updated++;
  }

  function tallyOf(name: string): Tally {
    const tally = tallies.get(name) ?? emptyTally();
    tallies.set(name, tally);
    return tally;
  }
}
