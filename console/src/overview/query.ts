/** The query of the overview. */

import type { ResultOf } from '@graphql-typed-document-node/core';
import { graphql } from '../api/graphql.ts';

export const overview = graphql(`
  query Overview {
    viewer {
      id
      rank
      league
      totalPoints
      matchPoints
      dttTotalSessions
      dttTotalReps
      activeDttTemplate {
        id
        databaseId
        name
        tagline
        segments {
          id
          type
          durationSeconds
          repeat
        }
      }
      latestDttSession {
        id
        databaseId
        name
        createdAt
        passed
        template {
          id
          name
        }
        segments {
          id
          passed
          points
          gradePercent
        }
      }
      activeLockSession {
        id
        databaseId
        name
        lockState
        startedAt
        endsAt
      }
      dttDevices(first: 100) {
        totalCount
        nodes {
          id
          serialNumber
          softwareVersion
          lastVisitedAt
        }
      }
      lkbxDevices(first: 100) {
        totalCount
        nodes {
          id
          bubbleId
          macAddress
          locked
          lastVisitedAt
        }
      }
      ossmDevices(first: 100) {
        totalCount
        nodes {
          id
          bubbleId
          macAddress
          chip
          pairingCode
          pairingExpiresAt
          lastVisitedAt
        }
      }
    }
  }
`);

export type Viewer = NonNullable<ResultOf<typeof overview>['viewer']>;
