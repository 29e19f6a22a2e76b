/** What a Relay frontend asks: its compiler has to accept the schema. Run by .ci/run; Relay itself is not needed. */

import { graphql } from 'relay-runtime';

/** One trainer, as its component needs it. */
export const trainer = graphql`
  fragment trainers_trainer on DttDevice {
    serialNumber
    lastVisitedAt
    sessions(first: 1) {
      edges {
        node {
          name
          passed
        }
      }
    }
  }
`;

/** A list that reads on by itself, and can be read anew by way of \`node(id:)\`. */
export const list = graphql`
  fragment trainers_list on User
  @argumentDefinitions(first: { type: "Int", defaultValue: 10 }, after: { type: "String" })
  @refetchable(queryName: "trainersPageQuery") {
    dttDevices(first: $first, after: $after) @connection(key: "trainers_dttDevices") {
      edges {
        node {
          id
          ...trainers_trainer
        }
      }
    }
  }
`;

export const page = graphql`
  query trainersQuery {
    viewer {
      username
      ...trainers_list
    }
  }
`;

export const activation = graphql`
  mutation trainersActivationMutation($id: ID!) {
    activateTemplate(template: { id: $id }) {
      template {
        id
        isActive
      }
      previousTemplate {
        id
        isActive
      }
      viewer {
        activeDttTemplate {
          id
        }
      }
    }
  }
`;

export const active = graphql`
  subscription trainersActiveSubscription {
    activeDttTemplate {
      id
      name
    }
  }
`;
