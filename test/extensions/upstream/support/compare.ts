/** Compares what a mirror has of an account with what the stand-in has. */

import { createToken, revokeToken } from '../../../../src/auth/tokens.ts';
import { createUpstream } from '../../../../src/extensions/upstream/client/upstream.ts';
import { openTestGateway, rest, type TestDatabase } from '../../../support/gateway.ts';
import { extensionsWith, stillMirror } from './mirrorService.ts';
import type { StandIn } from './standIn/standIn.ts';

const routes = [
  '/users/me',
  '/dtt?limit=100',
  '/dtt/templates?limit=100',
  '/dtt/templates/active',
  '/dtt/sessions?limit=100',
  '/dtt/sessions?limit=7&offset=3',
  '/dtt/sessions/latest',
  '/lkbx?limit=100',
  '/lkbx/templates?limit=100',
  '/lkbx/templates/active',
  '/lkbx/sessions?limit=100',
  '/lkbx/sessions/latest',
  '/lkbx/session/current',
  '/ossm?limit=100',
];
/** How many sessions are compared by their ids. */
const sessionsById = 5;

/** @returns what differs, by REST from the rows of the mirror. */
export async function compare(
  service: StandIn,
  database: TestDatabase,
  accountId: number,
  token: string,
): Promise<string[]> {
  const account = service.account(accountId);
  const mirror = stillMirror(database.pool, createUpstream({ base: service.base, token }));
  const local = await openTestGateway(
    { ...database, close: async () => {} },
    { extensions: extensionsWith(() => mirror) },
  );
  const own = await createToken(database.pool, String(account.user.username), `own ${performance.now()}`);
  const paths = [
    ...routes,
    ...[...account.sessions.keys()].slice(-sessionsById).map((id) => `/dtt/sessions/${id}`),
    ...[...account.ownTemplates, ...account.imports].map((id) => `/dtt/templates/${id}`),
  ];
  const problems: string[] = [];
  for (const path of paths) {
    const here = await rest(local, own.token, path);
    const response = await fetch(service.base + path, { headers: { Authorization: `Bearer ${token}` } });
    const there = await response.json();
    problems.push(...differences(here.body.data, there.data, path));
  }
  await local.close();
  await revokeToken(database.pool, own.id);
  return problems;
}

/** Fields that a client may write into the segments of a template, and that the gateway does not have. */
const unknownOfSegment = new Set(['speed', 'order', 'passFailEnabled', 'passGradeThreshold', 'failureText']);

/** Where `here` lacks something that `there` has; it may have more. */
function differences(here: unknown, there: unknown, path: string): string[] {
  if (typeof there !== 'object' || there === null)
    return here === there ? [] : [`${path} is ${JSON.stringify(here)} instead of ${JSON.stringify(there)}`];
  if (Array.isArray(there) && (!Array.isArray(here) || here.length !== there.length))
    return [`${path} does not have ${there.length} records`];
  const isSegment = path.includes('/Segment/');
  return Object.entries(there)
    .filter(([name]) => !(isSegment && unknownOfSegment.has(name)))
    .flatMap(([name, value]) => differences(Object(here)[name], value, `${path}/${name}`));
}
