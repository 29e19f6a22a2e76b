/** What the history asks. */

import type {
  HistoryCountsQuery,
  HistoryFiguresQuery,
  HistorySessionsQuery,
} from '../../generated/graphql.ts';
import { graphql } from '../api/graphql.ts';

/** How many sessions there are in each period. */
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

/** What was measured in each period. Of very many sessions it takes longer than how many they are, so it is asked by itself. */
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

/** A page of the sessions. */
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

/** Which programs there are sessions of, and from when to when. */
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

/** Which trainers there are sessions of. */
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

export type CountsOf = NonNullable<HistoryCountsQuery['dttSessionStats']>;
export type FiguresOf = NonNullable<HistoryFiguresQuery['dttSessionStats']>;

/** Of what was measured nothing is known at first. */
export type Total = CountsOf['total'] & Partial<FiguresOf['total']>;
export type Group = CountsOf['groups'][number] & Partial<FiguresOf['groups'][number]>;

export type SessionPage = NonNullable<HistorySessionsQuery['dttSessions']>;
export type Session = SessionPage['nodes'][number];
