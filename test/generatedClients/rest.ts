/** A REST client at work, typed by `openapi-typescript`: it compiles only against the OpenAPI document as it is. */

import createClient, { type Client } from 'openapi-fetch';
import type { paths } from './generated/openapi.ts';

export function createRestClient(gateway: string, token: string): Client<paths> {
  return createClient<paths>({
    baseUrl: `${gateway}/api/v1`,
    headers: { Authorization: `Bearer ${token}` },
  });
}

/** Activates the newest template, and names what its segments are. */
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
