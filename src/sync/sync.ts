/** One run of the synchronisation: learns whose account it is, and brings the mirror to what the upstream has. */

import pMap from 'p-map';
import type pg from 'pg';
import { z } from 'zod';
import { add, type Counts, type Mirror, openMirror } from './mirror.ts';
import { type Item, readPages } from './pages.ts';
import { type Kind, kindsOf, type MirrorRecord, recordId, user as userSchema } from './records.ts';
import { isMissing, isNotOffered, Refusal, type Upstream, UpstreamError } from './upstream.ts';

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

export interface Tally extends Counts {
  fetched: number;
  gone: number;
  skipped: number;
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

/** How many records are asked for at the same time. */
const concurrency = 4;

/** How many bad records are reported one by one. */
const maxReports = 20;

/**
 * Brings the mirror to what the upstream has, or answers undefined while another run is at it.
 * @throws {UpstreamError} when the upstream cannot be used, {SetupError} when the database cannot.
 */
export async function sync(options: SyncOptions): Promise<SyncReport | undefined> {
  const { pool, upstream, signal, lease } = options;
  const before = upstream.requestCount();
  const account = await learnAccount(upstream, options.named, signal);
  const mirror = await openMirror({ pool, source: upstream.base, account, ...(lease && { lease }) });
  if (!mirror) return undefined;
  try {
    const run = createRun(options, mirror, account);
    await run.all();
    return { account, tallies: run.tallies, notes: run.notes(), requests: upstream.requestCount() - before };
  } finally {
    await mirror.release();
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

  // Only the account's own id is answered for, so the owner of an imported template is none to worry about.
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
async function optional(answer: Promise<unknown>): Promise<unknown> {
  try {
    return await answer;
  } catch (error) {
    if (isNotOffered(error) || isMissing(error)) return undefined;
    throw error;
  }
}

function createRun(options: SyncOptions, mirror: Mirror, account: Account) {
  const { upstream, full = false, named = {}, signal, listener } = options;
  const kinds = kindsOf(account.id);
  const tallies = new Map<string, Tally>();
  const skips: string[] = [];
  const reports: string[] = [];
  let reported = 0;

  return {
    tallies,
    notes: () => [
      ...skips,
      ...reports,
      ...(reported > reports.length ? [`… and ${reported - reports.length} more.`] : []),
    ],

    async all(): Promise<void> {
      const users = tallyOf('user');
      add(users, await mirror.writeUser(account));
      users.fetched = 1;
      listener?.finished?.('user', users);
      await pull(kinds.dttDevices);
      await pullTemplates();
      await pull(kinds.lkbxDevices, named.lkbxDevices);
      await pullLocks();
      await pull(kinds.ossmDevices);
      await pullSessions();
    },
  };

  /** Templates, and which of them is the active one. */
  async function pullTemplates(): Promise<void> {
    const before = await mirror.activeTemplate();
    const active = new Set<number>();
    const { whole } = await pull(kinds.dttTemplates, [], {
      listed: ({ row, isActive }) => isActive && active.add(row.id),
    });
    // More than one was active only if another was activated while the list was read: the next run will tell.
    const [id = null] = active;
    if (active.size === 1 || (active.size === 0 && whole)) await mirror.setActiveTemplate(id, before);
  }

  /** Lock templates and sessions, and which template the active session was started from. */
  async function pullLocks(): Promise<void> {
    const template = await activeLockTemplate();
    await pull(kinds.lockTemplates, [...(named.lockTemplates ?? []), ...(template?.id ? [template.id] : [])]);
    await pull(kinds.lockSessions, named.lockSessions ?? [], {
      async unlisted() {
        const current = identified.safeParse(await optional(upstream.get('/lkbx/session/current', signal)));
        return current.success ? [current.data.id] : [];
      },
    });
    // Only if no other session was started while they were read, for the answer does not say which it belongs to.
    if (template && template.id === (await activeLockTemplate())?.id) {
      const changed = await mirror.setActiveLockTemplate(template.id);
      const tally = tallyOf(kinds.lockSessions.name);
      if (changed && tally.unchanged > 0) {
        tally.unchanged--;
        tally.updated++;
      }
    }
  }

  async function activeLockTemplate(): Promise<{ id: number | null } | undefined> {
    const answer = await optional(upstream.get('/lkbx/templates/active', signal));
    if (answer === null) return { id: null };
    return identified.safeParse(answer).data;
  }

  /**
   * Sessions, newest first. Reading stops at a page of which everything is known, if everything behind it is
   * known as well: an earlier run may have been cut off, and then has left a gap.
   */
  async function pullSessions(): Promise<void> {
    const stopAtKnown = mirror.sessionsComplete && !full;
    let complete = mirror.sessionsComplete;
    const { whole } = await pull(kinds.dttSessions, [], {
      expected: account.dttTotalSessions,
      async page(changed) {
        if (changed === 0) return stopAtKnown;
        if (complete) await mirror.setSessionsComplete(false);
        complete = false;
        return false;
      },
    });
    if (whole && !complete) await mirror.setSessionsComplete(true);
  }

  interface PullHooks {
    expected?: number | undefined;
    /** Told of every record that the list has. */
    listed?(record: MirrorRecord): void;
    /** Told how many records of a page are new or changed, before they are written. Answers whether to stop. */
    page?(changed: number): Promise<boolean>;
    /** More ids, for an upstream that does not have the list. */
    unlisted?(): Promise<number[]>;
  }

  /**
   * Pulls all records of a kind.
   * @returns whether all that was there to read was read, and nothing had to be skipped.
   */
  async function pull(
    kind: Kind,
    ids: readonly number[] = [],
    hooks: PullHooks = {},
  ): Promise<{ whole: boolean }> {
    const tally = tallyOf(kind.name);
    const seen = new Set<number>();
    let stopped = false;
    try {
      for await (const page of readPages(upstream, kind.list, signal)) {
        const { records, missing } = await readPage(kind, page, seen, hooks);
        if (await hooks.page?.(records.length + missing.length)) {
          stopped = true;
          break;
        }
        await fetchAndWrite(kind, records, missing, hooks.expected);
      }
      if (!stopped && tally.skipped === 0) await removeGone(kind, seen);
      listener?.finished?.(kind.name, tally);
      return { whole: tally.skipped === 0 };
    } catch (error) {
      if (kind.documented || seen.size > 0 || !isNotOffered(error)) throw error;
      const known = new Set([...ids, ...(await mirror.ids(kind)), ...((await hooks.unlisted?.()) ?? [])]);
      skips.push(
        `GET ${kind.list} is not offered (${error.status}): ${known.size > 0 ? `read ${known.size} ${kind.name} by id` : 'skipped'}.`,
      );
      await fetchAndWrite(kind, [], [...known], known.size);
      listener?.finished?.(kind.name, tally);
      return { whole: false };
    }
  }

  /** Sorts a page into whole records, and the ids of those that have to be asked for one by one. */
  async function readPage(kind: Kind, page: Item[], seen: Set<number>, hooks: PullHooks) {
    const tally = tallyOf(kind.name);
    const records: MirrorRecord[] = [];
    const missing: number[] = [];
    for (const { id, item } of page) {
      if (id !== undefined) seen.add(id);
      const { data: record, error } = (kind.summary ?? kind.record).safeParse(item);
      if (record) records.push(record);
      else if (id !== undefined && !kind.summary) missing.push(id);
      else
        skip(
          kind,
          `${kind.list}, ${id === undefined ? 'a record without a valid id' : `id ${id}`}`,
          firstIssue(error),
        );
    }
    for (const record of records) hooks.listed?.(record);
    const changed = full && kind.summary ? undefined : await mirror.differing(kind, records);
    const needed = records.filter(({ row }) => changed?.has(row.id) ?? true);
    tally.fetched += records.length - needed.length;
    tally.unchanged += records.length - needed.length;
    progress(kind, hooks.expected);
    return kind.summary
      ? { records: [], missing: [...missing, ...needed.map(({ row }) => row.id)] }
      : { records: needed, missing };
  }

  async function fetchAndWrite(
    kind: Kind,
    records: readonly MirrorRecord[],
    missing: readonly number[],
    expected?: number,
  ): Promise<void> {
    const tally = tallyOf(kind.name);
    tally.fetched += records.length;
    const fetched = await pMap(
      missing,
      async (id) => {
        const record = await fetchOne(kind, id);
        tally.fetched++;
        progress(kind, expected);
        return record === 'missing' ? undefined : record;
      },
      { concurrency, ...(signal && { signal }) },
    );
    const present = [...records, ...fetched.filter((record) => record !== undefined)];
    add(
      tally,
      await mirror.write(kind, present, ({ row }, reason) => skip(kind, `${kind.item}${row.id}`, reason)),
    );
    progress(kind, expected);
  }

  /** One record by its id; undefined for one that was reported and has to be skipped. */
  async function fetchOne(kind: Kind, id: number): Promise<MirrorRecord | 'missing' | undefined> {
    const path = `${kind.item}${id}`;
    try {
      const { data: record, error } = kind.record.safeParse(await upstream.get(path, signal));
      if (record?.row.id === id) return record;
      skip(kind, path, record ? `id: is ${record.row.id}` : firstIssue(error));
    } catch (error) {
      if (isMissing(error)) return 'missing';
      if (!(error instanceof Refusal)) throw error;
      skip(kind, path, `it answered ${error.status}`);
    }
    return undefined;
  }

  /**
   * Removes the records that a whole list no longer had. Each is asked for once more, since a list that changes
   * while it is read can hide a record.
   */
  async function removeGone(kind: Kind, seen: ReadonlySet<number>): Promise<void> {
    const unseen = (await mirror.ids(kind)).filter((id) => !seen.has(id));
    const answers = await pMap(unseen, async (id) => ({ id, answer: await fetchOne(kind, id) }), {
      concurrency,
    });
    const gone = answers.filter(({ answer }) => answer === 'missing').map(({ id }) => id);
    if (gone.length === 0) return;
    await mirror.remove(kind, gone);
    tallyOf(kind.name).gone = gone.length;
  }

  function progress(kind: Kind, expected?: number): void {
    listener?.advanced?.(kind.name, tallyOf(kind.name).fetched, expected);
  }

  function skip(kind: Kind, where: string, why: string): void {
    tallyOf(kind.name).skipped++;
    if (++reported <= maxReports) reports.push(`${where}: ${why}; skipped.`);
  }

  function tallyOf(name: string): Tally {
    const tally = tallies.get(name) ?? {
      fetched: 0,
      created: 0,
      updated: 0,
      unchanged: 0,
      gone: 0,
      skipped: 0,
    };
    tallies.set(name, tally);
    return tally;
  }
}

const identified = z.object({ id: recordId });

/** The first thing that is wrong, with the field that it is wrong about. */
function firstIssue(error: z.ZodError | undefined): string {
  const [issue] = error?.issues ?? [];
  if (!issue) return 'is not valid';
  return issue.path.length > 0 ? `${issue.path.join('.')}: ${issue.message}` : issue.message;
}
