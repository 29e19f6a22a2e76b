/** The tokens of the account, and what can be done with them. */

import { graphql } from '../api/graphql.ts';

graphql(`
  fragment TokenFields on ApiToken {
    id
    name
    prefix
    scopes
    createdAt
    lastUsedAt
    expiresAt
    isCurrent
  }
`);

export const settings = graphql(`
  query Settings {
    viewer {
      id
      subscriptionTier
      apiTokens {
        ...TokenFields
      }
      currentToken {
        ...TokenFields
      }
    }
  }
`);

/** The viewer in the payloads brings the list up to date. */
export const createApiToken = graphql(`
  mutation CreateToken($name: String!, $scopes: [TokenScope!]!, $expiresAt: DateTime) {
    createApiToken(name: $name, scopes: $scopes, expiresAt: $expiresAt) {
      secret
      token {
        id
        name
      }
      viewer {
        id
        apiTokens {
          ...TokenFields
        }
      }
    }
  }
`);

export const revokeApiToken = graphql(`
  mutation RevokeToken($token: ApiTokenReference!) {
    revokeApiToken(token: $token) {
      token {
        id
        name
      }
      viewer {
        id
        apiTokens {
          ...TokenFields
        }
      }
    }
  }
`);
