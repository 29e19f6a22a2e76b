/** A frontend's view of the viewer's trainers, typed by `codegen.ts`: it compiles only against the schema as it is. */

import { graphql } from '../generated/client/index.ts';

export const trainersQuery = graphql(`
  query Trainers($first: Int!) {
    dttDevices(first: $first) {
      totalCount
      nodes {
        id
        serialNumber
        lastVisited
        sessions(first: 3) {
          nodes {
            name
            passed
            template {
              name
            }
          }
        }
      }
    }
  }
`);
