/** An example of a REST client. `openapi-typescript` generates its types from the current OpenAPI document. */

import createClient, { type Client } from 'openapi-fetch';
import type { paths } from './generated/openapi.ts';

export function createRestClient(gateway: string, token: string): Client<paths> {
  return createClient<paths>({
    baseUrl: `${gateway}/api/v1`,
    headers: { Authorization: `Bearer ${token}` },
  });
}

/** Activates the newest template. @returns the type and duration of each segment. */
export async function activateNewest(client: Client<paths>): Promise<string[]> {
  const { data: list } = await client.GET('/dtt/templates', { params: { query: { limit: 1 } } });
  const [newest] = list?.data.data ?? [];
  if (!newest) return [];
  const { data: activated, error } = await client.POST('/dtt/templates/{id}', {
    params: { path: { id: newest.id } },
    body: { isActive: true },
  });
  if (error) throw new Error(error.error);
  return activated.data.Segment.map(({ type, duration }) => `${type} of ${duration} s`);
}
