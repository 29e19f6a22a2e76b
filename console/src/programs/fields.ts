/** The fields of a program that both views read. */

import { graphql } from '../api/graphql.ts';

export const programFields = graphql(`
  fragment ProgramFields on DttTemplate {
    id
    databaseId
    name
    tagline
    isPublic
    isActive
    isImported
    viewerCanActivate
    segments {
      id
      type
      durationSeconds
      repeat
    }
  }
`);
