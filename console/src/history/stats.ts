/** The statistics that are shown: counts of sessions, and what was measured as soon as that is known. */

import { useMemo, useRef } from 'preact/hooks';
import type { DttSessionFilter } from '../../generated/graphql.ts';
import { type LiveResult, useLive } from '../api/useLive.ts';
import { timeZone } from '../parts/time.tsx';
import type { Period } from './calendar.ts';
import {
  type CountsOf,
  type FiguresOf,
  type Group,
  historyCounts,
  historyFigures,
  type Total,
} from './queries.ts';
import { isFilled } from './range.ts';

export interface Stats {
  readonly total: Total;
  readonly groups: readonly Group[];
  /** The periods that the groups are of. */
  readonly by: Period;
}

/** What statistics are asked with. @param days how many are shown. */
export const statsVariables = (where: DttSessionFilter, by: Period, days: number) => ({
  where,
  by: [by],
  timeZone,
  fill: isFilled(days),
});

/** The statistics now and after every change; those of before while others are on their way. */
export function useStats(where: DttSessionFilter, by: Period, days: number): LiveResult<Stats> {
  const variables = statsVariables(where, by, days);
  const counts = useLive(historyCounts, variables);
  const figures = useLive(historyFigures, variables);
  const last = useRef<Stats | undefined>(undefined);
  const counted = counts.isPending ? undefined : counts.data?.dttSessionStats;
  const measured = figures.isPending ? undefined : figures.data?.dttSessionStats;
  const stats = useMemo(() => counted && { ...merged(counted, measured), by }, [counted, measured, by]);
  if (!counts.isPending) last.current = stats ?? undefined;
  return { data: last.current, error: counts.error ?? figures.error, isPending: counts.isPending };
}

/** A change may reach the one before the other: what was measured is found by its date. */
function merged(counts: CountsOf, figures: FiguresOf | null | undefined): Omit<Stats, 'by'> {
  if (!figures) return counts;
  const byDate = new Map(figures.groups.map((group) => [group.period?.date, group]));
  return {
    total: { ...figures.total, ...counts.total },
    groups: counts.groups.map((group) => ({ ...byDate.get(group.period?.date), ...group })),
  };
}
