/** The part of a run that reads all lists of an account, part by part. */

import { z } from 'zod';
import { getOptional } from '../upstream/upstream.ts';
import {
  areSessionsComplete,
  noteSessions,
  readActive,
  setActiveLockTemplate,
  setActiveTemplate,
} from './accountRows.ts';
import { recordId } from './fields.ts';
import { writeUser } from './mirror.ts';
import { pullKind, type Run } from './pull.ts';
import { addWriteCounts } from './report.ts';

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

/**
 * Pulls lists, and marks the details of records that are new or changed as pending.
 * @throws {UpstreamError} when the upstream cannot be used, {LeaseTakenOver} when another run has taken over.
 */
export async function pullLists(run: Run, parts: readonly Part[]): Promise<void> {
  for (const part of allParts) if (parts.includes(part)) await pullPart[part](run);
}

const pullPart: Readonly<Record<Part, (run: Run) => Promise<unknown>>> = {
  user: pullUser,
  dttDevices: (run) => pullKind(run, run.kinds.dttDevices),
  dttTemplates: pullTemplates,
  lkbxDevices: (run) => pullKind(run, run.kinds.lkbxDevices),
  locks: pullLocks,
  ossmDevices: (run) => pullKind(run, run.kinds.ossmDevices),
  dttSessions: pullSessions,
};

async function pullUser({ account, isNew, transaction, report }: Run): Promise<void> {
  const counts = report.countsOf('user');
  addWriteCounts(counts, await transaction((client) => writeUser(client, account, isNew)));
  counts.fetched++;
}

/** Pulls templates, and finds the active one. */
async function pullTemplates(run: Run): Promise<void> {
  const { pool, account, transaction, confirm, report } = run;
  const { version } = await readActive(pool, account.id);
  const active = new Set<number>();
  await pullKind(run, run.kinds.dttTemplates, {
    onListed({ row, isActive }) {
      if (isActive) active.add(row.id);
    },
  });
  const [id = null, ...others] = active;
  // Two are active only if one was activated while the list was read, and a skipped record may be active as well. Then only the next
  // run can tell.
  const isKnown =
    others.length === 0 && (id !== null || report.countsOf(run.kinds.dttTemplates.name).skipped === 0);
  if (isKnown && (await readActive(pool, account.id)).id !== id) {
    await confirm();
    await setActiveTemplate(transaction, account.id, id, version);
  }
}

/** Pulls lock templates and sessions, and finds the template of the active session. */
async function pullLocks(run: Run): Promise<void> {
  const { account, kinds, transaction } = run;
  const template = await readActiveLockTemplate(run);
  await pullKind(run, kinds.lockTemplates);
  await pullKind(run, kinds.lockSessions);
  // The response does not name the session, and another one may have been started since: the template has to be the same as before.
  if (!template || (template.id !== null && template.id !== (await readActiveLockTemplate(run))?.id)) return;
  await setActiveLockTemplate(transaction, account.id, template.id);
}

/**
 * The template that the active lock session was started from. Its id is null if there is none; the result is undefined if the upstream
 * does not tell.
 */
async function readActiveLockTemplate({ upstream, signal }: Run): Promise<{ id: number | null } | undefined> {
  const response = await getOptional(upstream, '/lkbx/templates/active', signal);
  return response === null ? { id: null } : z.object({ id: recordId }).safeParse(response).data;
}

/**
 * Pulls sessions, newest first. Reading stops at a page that has nothing new, if the mirror is known to have all older sessions:
 * after a run that was cut off, some older ones may be missing.
 */
async function pullSessions(run: Run): Promise<void> {
  const { pool, account, transaction, full, confirm, kinds, mark } = run;
  let isComplete = await areSessionsComplete(pool, account.id);
  const mayStop = isComplete && !full;
  const areAllChecked = await pullKind(run, kinds.dttSessions, {
    expected: account.dttTotalSessions ?? undefined,
    async onPage(news) {
      if (news === 0) return mayStop;
      if (isComplete) await noteSessions(transaction, account.id, false);
      isComplete = false;
      return false;
    },
  });
  // Also if some records were skipped: otherwise every run would read the whole list.
  if (!isComplete && areAllChecked) {
    await confirm();
    await noteSessions(transaction, account.id, true, mark);
  }
}
