/** The report of a run: counts by kinds of records, and notes. */

import { requiredTier } from '../../../auth/tokens.ts';
import { commandLine, shellWord } from '../../../config/config.ts';
import type { Account } from './account.ts';

interface RecordCounts {
  fetched: number;
  written: number;
  gone: number;
  skipped: number;
}

export interface SyncReport extends Pick<RunReport, 'countsByKind' | 'notes'> {
  readonly account: Account;
  /** When all lists were last read, as in `StoredFreshness`. */
  readonly refreshedAt: number | undefined;
  readonly requests: number;
}

export type RunReport = ReturnType<typeof createRunReport>;

export function createRunReport() {
  const countsByKind = new Map<string, RecordCounts>();
  const notes: string[] = [];

  function countsOf(kind: string): RecordCounts {
    const counts = countsByKind.get(kind) ?? { fetched: 0, written: 0, gone: 0, skipped: 0 };
    countsByKind.set(kind, counts);
    return counts;
  }
  return {
    countsByKind,
    countsOf,
    /** How many records it has read so far. */
    fetched: () => [...countsByKind.values()].reduce((sum, { fetched }) => sum + fetched, 0),
    notes,
    skip(kind: string, where: string, why: string): void {
      countsOf(kind).skipped++;
      notes.push(`${where}: ${why}; skipped.`);
    },
  };
}

export const reportColumns = ['fetched', 'written', 'gone', 'skipped'] as const;

/** The rows of a table of all kinds of records, each with its name and these numbers. */
export const reportRows = ({ countsByKind }: Pick<SyncReport, 'countsByKind'>) =>
  [...countsByKind].map(([name, counts]) => [name, ...reportColumns.map((column) => String(counts[column]))]);

export const countChanges = ({ countsByKind }: Pick<SyncReport, 'countsByKind'>): number =>
  [...countsByKind.values()].reduce((sum, { written, gone }) => sum + written + gone, 0);

/** How to query the mirror. Tokens of the upstream are not valid here: they are never stored. */
export function nextStep(
  { username, subscriptionTier }: Account,
  config: Parameters<typeof commandLine>[0],
): string {
  if (subscriptionTier !== requiredTier) {
    return `A token needs the tier ultra, but the upstream says that ${printable(username)} has ${printable(subscriptionTier ?? 'none')}: the mirror cannot be queried until it says otherwise.`;
  }
  return commandLine(config, `token create --user ${shellWord(username)} --name mirror`);
}

/** A name from upstream, quoted and without control characters. */
export const printable = (text: string) => JSON.stringify(text.replace(/\p{C}/gu, ' '));
