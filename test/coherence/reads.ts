/** The reads under test, through both APIs, each with a function that extracts the state that its response shows. */

import type { Account } from '../support/accounts.ts';
import type { TestGateway } from '../support/gateway.ts';
import type { Register, Sight } from './floor.ts';

export interface Read {
  /** The path below `/api/v1`, or a query. */
  readonly ask: string;
  readonly by: 'REST' | 'POST' | 'GET';
  // biome-ignore lint/suspicious/noExplicitAny: each request is written beside the function that reads its response.
  see(data: any): Sight;
}

/** A template or a session. */
interface Row {
  id: number;
  name: string;
  isActive?: boolean;
  Segment?: { id: number; repeat: number }[];
  TrainerSegment?: { id: number; points: number }[];
}

const seeRows = (table: 'DttTemplate' | 'DttSession', rows: Row[]): Sight => ({
  counts: rows.flatMap(({ id, name, Segment = [], TrainerSegment = [] }): [Register, number][] => [
    [`${table} ${id}`, Number(name)],
    ...Segment.map((each): [Register, number] => [`DttTemplateSegment ${each.id}`, each.repeat]),
    ...TrainerSegment.map((each): [Register, number] => [`TrainerSegment ${each.id}`, each.points]),
  ]),
});
const seeLibrary = (rows: Row[]): Sight => ({
  ...seeRows('DttTemplate', rows),
  active: rows.find(({ isActive }) => isActive)?.id ?? 0,
});
const seeActive = (row: Row | null): Sight => ({
  ...seeRows('DttTemplate', row ? [row] : []),
  active: row?.id ?? 0,
});
const seeSessions = (rows: Row[]): Sight => seeRows('DttSession', rows);
const seeUser = (user: { id: number; rank: number }): Sight => ({
  counts: [[`User ${user.id}`, user.rank]],
});

const viewerQuery = '{ viewer { id: databaseId rank activeDttTemplate { id: databaseId name isActive } } }';
const templatesQuery =
  '{ dttTemplates { nodes { id: databaseId name isActive Segment: segments { id: databaseId repeat } } } }';
const sessionsQuery =
  '{ dttSessions(first: 2) { nodes { id: databaseId name TrainerSegment: segments { id: databaseId points } } } }';

const byQuery = (by: 'POST' | 'GET'): Read[] => [
  {
    ask: viewerQuery,
    by,
    see: ({ viewer }) => ({
      ...seeActive(viewer.activeDttTemplate),
      counts: [...seeActive(viewer.activeDttTemplate).counts, ...seeUser(viewer).counts],
    }),
  },
  { ask: templatesQuery, by, see: ({ dttTemplates }) => seeLibrary(dttTemplates.nodes) },
  { ask: sessionsQuery, by, see: ({ dttSessions }) => seeSessions(dttSessions.nodes) },
];

export const reads: readonly Read[] = [
  { ask: '/users/me', by: 'REST', see: seeUser },
  { ask: '/dtt/templates/active', by: 'REST', see: seeActive },
  { ask: '/dtt/templates', by: 'REST', see: ({ data }) => seeLibrary(data) },
  { ask: '/dtt/sessions?limit=2', by: 'REST', see: ({ data }) => seeSessions(data) },
  { ask: '/dtt/sessions/latest', by: 'REST', see: (row) => seeSessions([row]) },
  ...byQuery('POST'),
  ...byQuery('GET'),
];

/** Indices of reads that are chosen more often, so that several steps concern the same data. */
export const favourites = [viewerQuery, templatesQuery].map((query) =>
  reads.findIndex(({ ask }) => ask === query),
);

/** Sends a request with a body, if there is one. @throws an error unless the response is a good one. */
async function send(
  { url, log }: TestGateway,
  token: string,
  path: string,
  body?: object,
  position?: string,
) {
  const headers = {
    Authorization: `Bearer ${token}`,
    'Content-Type': 'application/json',
    ...(position !== undefined && { 'Dovetail-Position': position }),
  };
  const response = await fetch(url + path, {
    headers,
    ...(body && { method: 'POST', body: JSON.stringify(body) }),
  });
  const reply = await response.json();
  if (response.status !== 200 || 'errors' in reply)
    throw new Error(`${path} got ${response.status}: ${JSON.stringify(reply)} ${log.at(-1)}`);
  return { data: reply.data, position: response.headers.get('Dovetail-Position') ?? undefined };
}

/** The data of the response. */
export async function ask(gateway: TestGateway, token: string, { ask, by }: Read, position?: string) {
  const query = new URLSearchParams({ query: ask });
  const path = by === 'REST' ? `/api/v1${ask}` : by === 'GET' ? `/graphql?${query}` : '/graphql';
  const { data } = await send(gateway, token, path, by === 'POST' ? { query: ask } : undefined, position);
  return data;
}

/**
 * Activates a template through a gateway.
 * @returns the position of the database after the activation, for a gateway over a server.
 */
export async function activate(
  gateway: TestGateway,
  { token }: Account,
  id: number,
  endpoint: 'REST' | 'GraphQL',
): Promise<string | undefined> {
  const query = `mutation { activateTemplate(template: { databaseId: ${id} }) { scheduleTypeChanged } }`;
  const [path, body] =
    endpoint === 'REST' ? [`/api/v1/dtt/templates/${id}`, { isActive: true }] : ['/graphql', { query }];
  return (await send(gateway, token, path, body)).position;
}
