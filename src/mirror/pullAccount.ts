/** Pulls everything that an account has into the mirror, kind by kind. */

import { z } from 'zod';
import type { Account, Named } from './account.ts';
import { recordId } from './fields.ts';
import type { Mirror } from './mirror.ts';
import { type PullContext, type PullOptions, pull } from './pull.ts';
import { type Kind, kindsOf } from './records.ts';
import { add, emptyTally, type Tally } from './tally.ts';
import { getOptional, type Upstream } from './upstream.ts';

/** How many bad records, and how many bad values, are reported one by one. */
const maxReports = 20;

/** Told how a run goes on. */
export interface SyncListener {
  /** @param expected how many there may be in the end, where there is an idea of it. */
  advanced?(kind: string, fetched: number, expected?: number): void;
  finished?(kind: string, tally: Tally): void;
}

export interface PullAccountOptions {
  readonly upstream: Upstream;
  /** Whether to read everything again, rather than sessions until they are known. */
  readonly full?: boolean;
  readonly named?: Named;
  readonly signal: AbortSignal;
  readonly listener?: SyncListener;
}

export interface Pulled {
  /** By the names of the kinds. */
  readonly tallies: ReadonlyMap<string, Tally>;
  /** What was left out and why: operations that the upstream does not offer, and the first few bad records. */
  readonly notes: readonly string[];
}

const identified = z.object({ id: recordId });

/** What the steps below share. */
interface Run {
  readonly context: PullContext;
  readonly account: Account;
  readonly kinds: ReturnType<typeof kindsOf>;
  readonly named: Named;
  readonly listener: SyncListener | undefined;
  readonly tallyOf: (name: string) => Tally;
}

/** @throws {UpstreamError} when the upstream cannot be used, {SetupError} when another run has taken over. */
export async function pullAccount(
  options: PullAccountOptions,
  mirror: Mirror,
  account: Account,
): Promise<Pulled> {
  const { upstream, full = false, named = {}, signal, listener } = options;
  const notes = createNotes();
  const tallies = new Map<string, Tally>();
  const tallyOf = (name: string) => {
    const tally = tallies.get(name) ?? emptyTally();
    tallies.set(name, tally);
    return tally;
  };
  const { onAbsent, onSkipped, onAltered } = notes;
  const context: PullContext = { upstream, mirror, full, signal, onAbsent, onSkipped, onAltered };
  const kinds = kindsOf(account.id);
  const run: Run = { context, account, kinds, named, listener, tallyOf };

  await pullUser(run);
  await pullKind(run, kinds.dttDevices);
  await pullTemplates(run);
  await pullKind(run, kinds.lkbxDevices, { idsWithoutList: async () => named.lkbxDevices ?? [] });
  await pullLocks(run);
  await pullKind(run, kinds.ossmDevices);
  await pullSessions(run);
  return { tallies, notes: notes.all() };
}

/** Collects what was left out, of bad records and values only the first few. */
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

async function pullUser({ context, account, listener, tallyOf }: Run): Promise<void> {
  const tally = tallyOf('user');
  add(tally, await context.mirror.writeUser(account));
  tally.fetched++;
  listener?.finished?.('user', tally);
}

/** Templates, and which of them is the active one. */
async function pullTemplates(run: Run): Promise<void> {
  const { mirror } = run.context;
  const before = await mirror.activeTemplate();
  const active = new Set<number>();
  const isWhole = await pullKind(run, run.kinds.dttTemplates, {
    onListed({ row, isActive }) {
      if (isActive) active.add(row.id);
    },
  });
  // Two are active only if one was activated while the list was read. The next run will tell.
  const [id = null] = active;
  if (active.size > 1 || (id === null && !isWhole)) return;
  if (await mirror.setActiveTemplate(id, before)) countChange(run, run.kinds.dttTemplates);
}

/** Lock templates and sessions, and which template the active session was started from. */
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
  // The response does not say which session it is about: another one may have been started since the first.
  if (!template || template.id !== (await activeLockTemplate(context))?.id) return;
  if (await context.mirror.setActiveLockTemplate(template.id)) countChange(run, kinds.lockSessions);
}

async function currentLockSession({ upstream, signal }: PullContext): Promise<{ id: number } | undefined> {
  const response = await getOptional(upstream, '/lkbx/session/current', signal);
  return identified.safeParse(response).data;
}

/** The template that the active lock session was started from, with the id null for none. Undefined if the upstream does not tell. */
async function activeLockTemplate({
  upstream,
  signal,
}: PullContext): Promise<{ id: number | null } | undefined> {
  const response = await getOptional(upstream, '/lkbx/templates/active', signal);
  return response === null ? { id: null } : identified.safeParse(response).data;
}

/**
 * Sessions, newest first. Reading stops at a page of which everything is known, if everything behind it is
 * known as well: a run that was cut off leaves a gap behind what it had read.
 */
async function pullSessions(run: Run): Promise<void> {
  const { mirror, full } = run.context;
  const mayStop = mirror.sessionsComplete && !full;
  let isComplete = mirror.sessionsComplete;
  const isWhole = await pullKind(run, run.kinds.dttSessions, {
    async onPage(changed) {
      if (changed === 0) return mayStop;
      if (isComplete) await mirror.setSessionsComplete(false);
      isComplete = false;
      return false;
    },
  });
  if (isWhole !== isComplete) await mirror.setSessionsComplete(isWhole);
}

/** Returns whether nothing had to be skipped. */
async function pullKind(
  { context, account, kinds, listener, tallyOf }: Run,
  kind: Kind,
  options: Omit<PullOptions, 'tally' | 'onAdvanced'> = {},
): Promise<boolean> {
  const tally = tallyOf(kind.name);
  const expected = kind === kinds.dttSessions ? (account.dttTotalSessions ?? undefined) : undefined;
  const onAdvanced = () => listener?.advanced?.(kind.name, tally.fetched, expected);
  const isWhole = await pull(context, kind, { ...options, tally, onAdvanced });
  listener?.finished?.(kind.name, tally);
  return isWhole;
}

/** Makes a change count that no record of its own stands for, unless it came along with one that changed. */
function countChange({ tallyOf }: Run, { name }: Kind): void {
  const tally = tallyOf(name);
  if (tally.unchanged === 0 || tally.created + tally.updated > 0) return;
  tally.unchanged--;
  tally.updated++;
}
