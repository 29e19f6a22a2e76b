/** What both views read of a program. */

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
