/** A frontend's view of the viewer's trainers, typed by `codegen.ts`: it compiles only against the schema as it is. */

import { Client, fetchExchange } from '@urql/core';
import { graphql } from './generated/client/index.ts';

export interface Trainer {
  readonly serialNumber: string;
  /** The programs of the latest sessions. */
  readonly programs: readonly string[];
}

const trainersQuery = graphql(`
  query Trainers($first: Int!) {
    dttDevices(first: $first) {
      totalCount
      nodes {
        serialNumber
        sessions(first: 3) {
          nodes {
            template {
              name
            }
          }
        }
      }
    }
  }
`);

const activation = graphql(`
  mutation ActivateTemplate($databaseId: Int!) {
    activateTemplate(template: { databaseId: $databaseId }) {
      scheduleTypeChanged
    }
  }
`);

const activeTemplate = graphql(`
  subscription ActiveTemplateNow {
    activeDttTemplate {
      name
    }
  }
`);

/** @param url of the gateway, such as `http://localhost:4000/graphql`. */
export function createClient(url: string, token: string): Client {
  return new Client({
    url,
    exchanges: [fetchExchange],
    fetchOptions: { headers: { Authorization: `Bearer ${token}` } },
    // Subscriptions come as server-sent events.
    fetchSubscriptions: true,
  });
}

export async function readTrainers(
  client: Client,
  first: number,
): Promise<{ total: number; trainers: Trainer[] }> {
  const { data, error } = await client.query(trainersQuery, { first });
  // A field that fails is null, and nothing beside it.
  if (!data?.dttDevices) throw error;
  const { totalCount, nodes } = data.dttDevices;
  const trainers = nodes.map(({ serialNumber, sessions }) => ({
    serialNumber: serialNumber ?? 'unknown',
    programs: sessions?.nodes.flatMap(({ template }) => template?.name ?? []) ?? [],
  }));
  return { total: totalCount, trainers };
}

/** Tells whether the schedule type changed, or null where that is not known. */
export async function activate(client: Client, databaseId: number): Promise<boolean> {
  const { data, error } = await client.mutation(activation, { databaseId });
  if (!data?.activateTemplate) throw error;
  return data.activateTemplate.scheduleTypeChanged;
}

/** Calls back with the name of the active template, now and whenever it changes, until it is told to stop. */
export function followActiveTemplate(client: Client, onName: (name: string | undefined) => void): () => void {
  const source = client.subscription(activeTemplate, {});
  return source.subscribe(({ data }) => onName(data?.activeDttTemplate?.name)).unsubscribe;
}
