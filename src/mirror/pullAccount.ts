/** Pulls everything that an account has into the mirror, kind by kind. */

import { z } from 'zod';
import { getOptional, type Upstream } from '../upstream/upstream.ts';
import type { Account, Named } from './account.ts';
import { recordId } from './fields.ts';
import { kindsOf } from './kinds/kinds.ts';
import { readPages } from './list.ts';
import type { Mirror } from './mirror.ts';
import { type PullContext, type PullOptions, pull, pullPending } from './pull.ts';
import { addWriteCounts, emptyRecordCounts, type RecordCounts } from './recordCounts.ts';
import type { Kind } from './records.ts';

/** How many skipped records, and how many replaced values, are reported one by one. */
const maxReports = 20;

/** The parts of an account, in the order in which their lists are read: records that others refer to come first. */
export const allParts = [
  'user',
  'dttDevices',
  'dttTemplates',
  'lkbxDevices',
  'locks',
  'ossmDevices',
  'dttSessions',
] as const;

export type Part = (typeof allParts)[number];

/** Hears of the progress of a run. */
export interface SyncListener {
  /** @param expected how many records there may be in the end, if that is known. */
  advanced?(kind: string, fetched: number, expected?: number): void;
  finished?(kind: string, counts: RecordCounts): void;
}

export interface PullAccountOptions {
  readonly upstream: Upstream;
  /** Whether to read everything again. Otherwise sessions are read only as far as they are new. */
  readonly full?: boolean;
  readonly named?: Named;
  readonly signal: AbortSignal;
  readonly listener?: SyncListener;
  /** Which lists to read; all unless told otherwise. */
  readonly parts?: readonly Part[];
  /** By kind, the ids of records whose details an earlier run could not read. They are not fetched again. */
  readonly unreadable?: Map<string, Set<number>>;
  /** As in `PullContext`. */
  readonly mayDeny?: PullContext['mayDeny'];
}

/** What a run has done so far. The steps of a run share it. */
export interface RunProgress {
  readonly countsByKind: Map<string, RecordCounts>;
  readonly notes: ReturnType<typeof createNotes>;
  /** As in `PullOptions`, by the names of the kinds. */
  readonly fresh: Map<string, Set<number>>;
}

export const createProgress = (): RunProgress => ({
  countsByKind: new Map(),
  notes: createNotes(),
  fresh: new Map(),
});

export interface Pulled {
  /** By the names of the kinds. */
  readonly countsByKind: ReadonlyMap<string, RecordCounts>;
  /** What was left out and why: operations that the upstream does not offer, and the first few records that were skipped. */
  readonly notes: readonly string[];
  /** How many records were skipped, of all kinds together. */
  readonly skipped: number;
}

const identified = z.object({ id: recordId });

/** What the steps below share. */
interface Run {
  readonly context: PullContext;
  readonly account: Account;
  readonly kinds: ReturnType<typeof kindsOf>;
  readonly named: Named;
  readonly listener: SyncListener | undefined;
  readonly countsOf: (name: string) => RecordCounts;
  readonly freshOf: (name: string) => Set<number>;
}

/**
 * Pulls all lists, and marks the details of records that are new or changed as pending.
 * @throws {UpstreamError} when the upstream cannot be used, {SetupError} when another run has taken over.
 */
export async function pullLists(
  options: PullAccountOptions,
  mirror: Mirror,
  account: Account,
  progress = createProgress(),
): Promise<Pulled> {
  const run = createRun(options, mirror, account, progress);
  for (const part of allParts) if (!options.parts || options.parts.includes(part)) await pullPart[part](run);
  return pulledOf(progress);
}

const pullPart: Readonly<Record<Part, (run: Run) => Promise<unknown>>> = {
  user: pullUser,
  dttDevices: (run) => pullKind(run, run.kinds.dttDevices),
  dttTemplates: pullTemplates,
  lkbxDevices: (run) =>
    pullKind(run, run.kinds.lkbxDevices, { idsWithoutList: async () => run.named.lkbxDevices ?? [] }),
  locks: pullLocks,
  ossmDevices: (run) => pullKind(run, run.kinds.ossmDevices),
  dttSessions: pullSessions,
};

/**
 * Fetches all details that are pending, those of templates first.
 * @param progress that of the lists before, so that each record is counted once.
 * @throws as `pullLists` does.
 */
export async function pullDetails(
  options: PullAccountOptions,
  mirror: Mirror,
  account: Account,
  progress = createProgress(),
): Promise<Pulled> {
  const run = createRun(options, mirror, account, progress);
  for (const kind of [run.kinds.dttTemplates, run.kinds.dttSessions]) {
    const failed = getOrAdd(options.unreadable ?? new Map<string, Set<number>>(), kind.name, () => new Set());
    await pullPending(run.context, kind, countingOf(run, kind), failed);
    run.listener?.finished?.(kind.name, run.countsOf(kind.name));
  }
  return pulledOf(progress);
}

function createRun(
  { upstream, full = false, named = {}, signal, listener, mayDeny }: PullAccountOptions,
  mirror: Mirror,
  account: Account,
  { countsByKind, notes, fresh }: RunProgress,
): Run {
  const { onAbsent, onSkipped, onDenied, onAltered } = notes;
  return {
    context: {
      upstream,
      mirror,
      full,
      signal,
      ...(mayDeny && { mayDeny }),
      onAbsent,
      onSkipped,
      onDenied,
      onAltered,
    },
    account,
    kinds: kindsOf(account.id),
    named,
    listener,
    countsOf: (name) => getOrAdd(countsByKind, name, emptyRecordCounts),
    freshOf: (name) => getOrAdd(fresh, name, () => new Set()),
  };
}

function getOrAdd<Value>(map: Map<string, Value>, name: string, create: () => Value): Value {
  const value = map.get(name) ?? create();
  map.set(name, value);
  return value;
}

const pulledOf = ({ countsByKind, notes }: RunProgress): Pulled => ({
  countsByKind,
  notes: notes.all(),
  skipped: [...countsByKind.values()].reduce((sum, { skipped }) => sum + skipped, 0),
});

/** Collects notes about what was left out: of skipped records and replaced values only the first few. */
function createNotes() {
  const absent: string[] = [];
  const skipped: string[] = [];
  const altered: string[] = [];
  let skips = 0;
  let alterations = 0;
  return {
    onAbsent(line: string): void {
      absent.push(line);
    },
    onSkipped(where: string, why: string): void {
      if (++skips <= maxReports) skipped.push(`${where}: ${why}; skipped.`);
    },
    onDenied(where: string): void {
      if (++skips <= maxReports)
        skipped.push(`${where}: the list has it, and by its id it is not there; kept as the list has it.`);
    },
    onAltered(where: string, what: string): void {
      if (++alterations <= maxReports) altered.push(`${where}: ${what}`);
    },
    all(): string[] {
      const more = skips > maxReports ? [`… and ${skips - maxReports} more; skipped.`] : [];
      const moreAltered =
        alterations > maxReports ? [`… and ${alterations - maxReports} more values that make no sense.`] : [];
      return [...absent, ...skipped, ...more, ...altered, ...moreAltered];
    },
  };
}

async function pullUser({ context, account, listener, countsOf }: Run): Promise<void> {
  const counts = countsOf('user');
  addWriteCounts(counts, await context.mirror.writeUser(account));
  counts.fetched++;
  listener?.finished?.('user', counts);
}

/** Pulls templates, and finds out which of them is the active one. */
async function pullTemplates(run: Run): Promise<void> {
  const { mirror } = run.context;
  const before = await mirror.version();
  const listed = new Set<number>();
  let pages = 0;
  const isWhole = await pullKind(run, run.kinds.dttTemplates, {
    onListed({ row, isActive }) {
      if (isActive) listed.add(row.id);
    },
    async onPage() {
      pages++;
      return false;
    },
  });
  // A template may have been activated after its page was read, and before the page of the active one was.
  const mayBeMissed = listed.size === 0 && pages > 1 && (await mirror.activeTemplate()) !== null;
  const [id = null, ...others] = mayBeMissed ? await readActiveTemplates(run) : listed;
  // Two are active only if one was activated while the list was read. The next run reads which one.
  if (others.length > 0 || (id === null && !isWhole)) return;
  if (await mirror.setActiveTemplate(id, before)) countChange(run, run.kinds.dttTemplates);
}

/** Reads the list of templates for the ids of the active ones alone. */
async function readActiveTemplates({ context, kinds }: Run): Promise<Set<number>> {
  const { list, summary } = kinds.dttTemplates;
  const active = new Set<number>();
  for await (const { items } of readPages(context.upstream, list, context.signal))
    for (const { item } of items) {
      const record = summary?.safeParse(item).data;
      if (record?.isActive) active.add(record.row.id);
    }
  return active;
}

/** Pulls lock templates and sessions, and finds out which template the active session was started from. */
async function pullLocks(run: Run): Promise<void> {
  const { context, kinds, named } = run;
  const template = await activeLockTemplate(context);
  await pullKind(run, kinds.lockTemplates, {
    idsWithoutList: async () => [...(named.lockTemplates ?? []), ...(template?.id ? [template.id] : [])],
  });
  await pullKind(run, kinds.lockSessions, {
    async idsWithoutList() {
      const current = await currentLockSession(context);
      return [...(named.lockSessions ?? []), ...(current ? [current.id] : [])];
    },
  });
  if (!template) return;
  // The response does not name the session, and another one may have been started since: the template has to be the same as before.
  if (template.id !== null && template.id !== (await activeLockTemplate(context))?.id) return;
  if (await context.mirror.setActiveLockTemplate(template.id)) countChange(run, kinds.lockSessions);
}

async function currentLockSession({ upstream, signal }: PullContext): Promise<{ id: number } | undefined> {
  const response = await getOptional(upstream, '/lkbx/session/current', signal);
  return identified.safeParse(response).data;
}

/**
 * Reads which template the active lock session was started from. The id is null if there is none, and the result is undefined if
 * the upstream does not tell.
 */
async function activeLockTemplate({
  upstream,
  signal,
}: PullContext): Promise<{ id: number | null } | undefined> {
  const response = await getOptional(upstream, '/lkbx/templates/active', signal);
  return response === null ? { id: null } : identified.safeParse(response).data;
}

/**
 * Pulls sessions, newest first. Reading stops at a page that has nothing new, if the mirror is known to have all older sessions:
 * after a run that was cut off, some older ones may be missing.
 */
async function pullSessions(run: Run): Promise<void> {
  const { mirror, full } = run.context;
  const mayStop = mirror.sessionsComplete && !full;
  let isComplete = mirror.sessionsComplete;
  let mayMoreBeGone = false;
  await pullKind(run, run.kinds.dttSessions, {
    async onPage(changed) {
      if (changed === 0) return mayStop;
      if (isComplete) await mirror.setSessionsComplete(false);
      isComplete = false;
      return false;
    },
    onMoreGone() {
      mayMoreBeGone = true;
    },
  });
  // Also if some records had to be skipped: reading the whole list at every run would take a request for each hundred sessions.
  if (!isComplete && !mayMoreBeGone) await mirror.setSessionsComplete(true);
}

/** Pulls the list of a kind. Returns whether nothing had to be skipped. */
async function pullKind(
  run: Run,
  kind: Kind,
  options: Omit<PullOptions, 'counts' | 'fresh' | 'onAdvanced'> = {},
): Promise<boolean> {
  const counting = countingOf(run, kind);
  const isWhole = await pull(run.context, kind, { ...options, ...counting });
  // A kind that has details is finished once those are read.
  if (!kind.summary) run.listener?.finished?.(kind.name, counting.counts);
  return isWhole;
}

function countingOf({ account, kinds, listener, countsOf, freshOf }: Run, { name }: Kind) {
  const counts = countsOf(name);
  const expected = name === kinds.dttSessions.name ? (account.dttTotalSessions ?? undefined) : undefined;
  const onAdvanced = () => listener?.advanced?.(name, counts.fetched, expected);
  return { counts, fresh: freshOf(name), onAdvanced };
}

/** Counts a change that is not in a record itself, such as which template is active, as one updated record of the kind. */
function countChange({ countsOf }: Run, { name }: Kind): void {
  const counts = countsOf(name);
  if (counts.unchanged === 0 || counts.created + counts.updated > 0) return;
  counts.unchanged--;
  counts.updated++;
}
