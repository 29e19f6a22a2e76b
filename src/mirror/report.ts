/** What a run did, in words. */

import { requiredTier } from '../auth/tokens.ts';
import { commandLine, shellWord } from '../config/config.ts';
import type { Account } from './account.ts';
import type { SyncReport } from './sync.ts';

const columns = ['fetched', 'created', 'updated', 'unchanged', 'gone', 'skipped'] as const;

/** A table of all kinds of records, one line each. */
export function reportTable({ countsByKind }: SyncReport): string {
  const lines = [
    ['', ...columns],
    ...[...countsByKind].map(([name, counts]) => [name, ...columns.map((column) => String(counts[column]))]),
  ];
  const widths = ['', ...columns].map((_, index) =>
    Math.max(...lines.map((line) => line[index]?.length ?? 0)),
  );
  const align = (cell: string, index: number) =>
    index === 0 ? cell.padEnd(widths[index] ?? 0) : cell.padStart(widths[index] ?? 0);
  return lines.map((line) => `${line.map(align).join('  ').trimEnd()}\n`).join('');
}

/** What has changed, such as `DTT sessions: 2 created`, or undefined if nothing has. */
export function describeChanges({ countsByKind }: SyncReport): string | undefined {
  const changes = [...countsByKind].flatMap(([name, counts]) => {
    const parts = (['created', 'updated', 'gone'] as const)
      .filter((change) => counts[change] > 0)
      .map((change) => `${counts[change]} ${change}`);
    return parts.length > 0 ? [`${name}: ${parts.join(', ')}`] : [];
  });
  return changes.length > 0 ? changes.join('; ') : undefined;
}

/** How to get at the mirror. Tokens of the upstream are not valid here: they are never stored. */
export function nextStep(
  { username, subscriptionTier }: Account,
  config: Parameters<typeof commandLine>[0],
): string {
  if (subscriptionTier !== requiredTier) {
    return `A token needs the tier ultra, but the upstream says that ${printable(username)} has ${printable(subscriptionTier ?? 'none')}: the mirror cannot be queried until it says otherwise.`;
  }
  return tokenStep(username, config);
}

/** The command that gives a user a token for the mirror. */
export const tokenStep = (username: string, config: Parameters<typeof commandLine>[0]) =>
  commandLine(config, `token create --user ${shellWord(username)} --name mirror`);

/** Names come from upstream: no control characters, and nothing that a shell would run. */
export const printable = (text: string) => JSON.stringify(text.replace(/\p{C}/gu, ' '));
