/** The statistics of the history: the counts of sessions, and the measured figures once they have arrived. */

import { useMemo, useRef } from 'preact/hooks';
import type { DttSessionFilter } from '../../generated/graphql.ts';
import { type LiveResult, useLive } from '../api/useLive.ts';
import { timeZone } from '../parts/time.tsx';
import type { Period } from './calendar.ts';
import {
  type Group,
  historyCounts,
  historyFigures,
  type StatsCounts,
  type StatsFigures,
  type Total,
} from './queries.ts';
import { isFilled } from './range.ts';

export interface Stats {
  readonly total: Total;
  readonly groups: readonly Group[];
  /** The length of the periods. */
  readonly by: Period;
}

/** The variables of the statistics. @param days how many days are shown. */
export const statsVariables = (where: DttSessionFilter, by: Period, days: number) => ({
  where,
  by: [by],
  timeZone,
  fill: isFilled(days),
});

/** The live statistics; while they are pending, the previous ones. */
export function useStats(where: DttSessionFilter, by: Period, days: number): LiveResult<Stats> {
  const variables = statsVariables(where, by, days);
  const counts = useLive(historyCounts, variables);
  const figures = useLive(historyFigures, variables);
  const previous = useRef<Stats | undefined>(undefined);
  const counted = counts.isPending ? undefined : counts.data?.dttSessionStats;
  const measured = figures.isPending ? undefined : figures.data?.dttSessionStats;
  const stats = useMemo(() => counted && { ...merged(counted, measured), by }, [counted, measured, by]);
  if (!counts.isPending) previous.current = stats ?? undefined;
  return { data: previous.current, error: counts.error ?? figures.error, isPending: counts.isPending };
}

/** Joins the groups by date: after a change, one of the two results may arrive before the other and have other groups. */
function merged(counts: StatsCounts, figures: StatsFigures | null | undefined): Omit<Stats, 'by'> {
  if (!figures) return counts;
  const byDate = new Map(figures.groups.map((group) => [group.period?.date, group]));
  return {
    total: { ...figures.total, ...counts.total },
    groups: counts.groups.map((group) => ({ ...byDate.get(group.period?.date), ...group })),
  };
}
