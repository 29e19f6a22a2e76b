/** The queries of the history. */

import type {
  HistoryCountsQuery,
  HistoryFiguresQuery,
  HistorySessionsQuery,
} from '../../generated/graphql.ts';
import { graphql } from '../api/graphql.ts';

/** Counts the sessions of each period. */
export const historyCounts = graphql(`
  query HistoryCounts($where: DttSessionFilter, $by: [DttSessionStatsKey!], $timeZone: String, $fill: Boolean) {
    dttSessionStats(where: $where, by: $by, timeZone: $timeZone, fill: $fill, maxGroups: 1000) {
      total {
        sessionCount
        passedSessionCount
        failedSessionCount
        detailsPendingCount
      }
      groups {
        period {
          date
          from
          to
        }
        sessionCount
        passedSessionCount
        failedSessionCount
      }
    }
  }
`);

/** The measured figures of each period. With very many sessions they take longer than the counts, so they are a query of their own. */
export const historyFigures = graphql(`
  query HistoryFigures($where: DttSessionFilter, $by: [DttSessionStatsKey!], $timeZone: String, $fill: Boolean) {
    dttSessionStats(where: $where, by: $by, timeZone: $timeZone, fill: $fill, maxGroups: 1000) {
      total {
        averageGradePercent
        totalPoints
        totalRepsMeasured
        totalDurationMeasuredSeconds
        totalDistanceTravelledMetres
      }
      groups {
        period {
          date
        }
        averageGradePercent
        totalPoints
        totalRepsMeasured
        totalDurationMeasuredSeconds
        totalDistanceTravelledMetres
      }
    }
  }
`);

/** A page of the list of sessions. */
export const historySessions = graphql(`
  query HistorySessions($where: DttSessionFilter, $first: Int, $after: String, $last: Int, $before: String) {
    dttSessions(where: $where, first: $first, after: $after, last: $last, before: $before) {
      totalCount
      nodes {
        id
        databaseId
        name
        createdAt
        passed
        templateId
        template {
          id
          name
        }
        trainerId
        trainer {
          id
          serialNumber
        }
        segments {
          id
          passed
          points
          gradePercent
          repsMeasured
          durationMeasuredSeconds
          distanceTravelledMetres
        }
      }
      pageInfo {
        startCursor
        endCursor
        hasPreviousPage
        hasNextPage
      }
    }
  }
`);

/** The programs that sessions used, and the times of the first and the last session. */
export const historyPrograms = graphql(`
  query HistoryPrograms {
    dttSessionStats(by: [TEMPLATE], maxGroups: 1000) {
      total {
        sessionCount
        firstSessionAt
        lastSessionAt
      }
      groups {
        sessionCount
        templateId
        template {
          id
          name
        }
      }
    }
  }
`);

/** The trainers of the sessions. */
export const historyTrainers = graphql(`
  query HistoryTrainers {
    dttSessionStats(by: [TRAINER], maxGroups: 1000) {
      groups {
        sessionCount
        trainerId
        trainer {
          id
          serialNumber
        }
      }
    }
  }
`);

export type StatsCounts = NonNullable<HistoryCountsQuery['dttSessionStats']>;
export type StatsFigures = NonNullable<HistoryFiguresQuery['dttSessionStats']>;

/** The measured figures are missing until their query has its result. */
export type Total = StatsCounts['total'] & Partial<StatsFigures['total']>;
export type Group = StatsCounts['groups'][number] & Partial<StatsFigures['groups'][number]>;

export type SessionPage = NonNullable<HistorySessionsQuery['dttSessions']>;
export type Session = SessionPage['nodes'][number];
