/**
 * The floor: `node:http` and `pg`, with one statement per route that produces the whole response as JSON. No server on Node and
 * PostgreSQL can be expected to be faster, but such code would be hard to maintain.
 */

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { announce, authenticate, openPool, type Statement } from './listen.ts';

const pool = openPool();

const time = (column: string) => `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

const device = `json_build_object('id', d.id, 'bubbleId', d."bubbleId", 'ownerId', d."ownerId", 'macAddress', d."macAddress",
  'serialNumber', d."serialNumber", 'softwareVersion', d."softwareVersion", 'lastVisited', ${time('d."lastVisited"')},
  'lastLogAt', ${time('d."lastLogAt"')}, 'createdDate', ${time('d."createdDate"')}, 'apiHits', d."apiHits")`;

const summary = `'id', g.id, 'type', g.type, 'passed', g.passed, 'percentGrade', g."percentGrade", 'points', g.points`;

const allOfSegment = `${summary}, 'durationMeasured', g."durationMeasured", 'durationTarget', g."durationTarget",
  'repsMeasured', g."repsMeasured", 'repsTarget', g."repsTarget", 'speedMeasured', g."speedMeasured",
  'speedTarget', g."speedTarget", 'targetDepth', g."targetDepth", 'targetWindow', g."targetWindow",
  'longestDeepthroat', g."longestDeepthroat", 'strokeLength', g."strokeLength",
  'distanceTravelled', g."distanceTravelled", 'order', g."order", 'createdAt', ${time('g."createdAt"')}`;

const segments = (
  fields: string,
) => `coalesce((SELECT json_agg(json_build_object(${fields}) ORDER BY g."order", g.id)
  FROM "TrainerSegment" g WHERE g."sessionId" = s.id), '[]')`;

const session = (
  fields: string,
) => `'id', s.id, 'bubble_id', s."bubbleId", 'name', s.name, 'passed', s.passed,
  'created_at', ${time('s."createdAt"')}, 'trainer_id', s."trainerId", 'settings_id', s."templateId",
  'TrainerSegment', ${segments(fields)}`;

const template = `'id', t.id, 'bubbleId', t."bubbleId", 'ownerId', t."ownerId", 'name', t.name, 'description', t.description,
  'tagline', t.tagline, 'message', t.message, 'isPublic', t."isPublic", 'isActive', true, 'handsFreeMode', t."handsFreeMode",
  'targetDepth', t."targetDepth", 'targetWindow', t."targetWindow", 'toyId', t."toyId",
  'createdDate', ${time('t."createdDate"')}, 'updatedAt', ${time('t."updatedAt"')}`;

const templateSegments = (
  fields: string,
) => `coalesce((SELECT json_agg(json_build_object(${fields}) ORDER BY g.position)
  FROM "DttTemplateSegment" g WHERE g."templateId" = t.id), '[]')`;

const visibleTemplate = `(t."ownerId" = $1 OR EXISTS
  (SELECT FROM "DttLibraryEntry" i WHERE i."templateId" = t.id AND i."userId" = $1))`;

const page = (
  record: string,
  rows: string,
) => `SELECT json_build_object('ok', true, 'data', json_build_object(
    'data', coalesce(json_agg(record), '[]'), 'pagination', json_build_object('limit', $2::int, 'offset', $3::int)))::text AS body
  FROM (SELECT ${record} AS record FROM ${rows} LIMIT $2 OFFSET $3) page`;

const one = (record: string, rows: string) =>
  `SELECT json_build_object('ok', true, 'data', ${record})::text AS body FROM ${rows}`;

const sessionsOfViewer = '"DttSession" s WHERE s."ownerId" = $1 ORDER BY s."createdAt" DESC, s.id DESC';

const routes: Record<string, string> = {
  'GET /dtt': page(
    device,
    '"DttDevice" d WHERE d."ownerId" = $1 ORDER BY d."lastVisited" DESC NULLS LAST, d.id DESC',
  ),
  'GET /dtt/sessions/{id}': one(
    `json_build_object(${session(allOfSegment)})`,
    '"DttSession" s WHERE s.id = $2 AND s."ownerId" = $1',
  ),
  'GET /dtt/sessions': page(`json_build_object(${session(summary)})`, sessionsOfViewer),
  // Not a route of the interface, but what the workload that follows links would need.
  'GET /dtt/sessions/linked': page(
    `json_build_object(${session(summary)},
      'trainer', (SELECT json_build_object('id', d.id, 'serialNumber', d."serialNumber", 'macAddress', d."macAddress",
          'lastVisited', ${time('d."lastVisited"')})
        FROM "DttDevice" d WHERE d.id = s."trainerId" AND d."ownerId" = $1),
      'template', (SELECT json_build_object('id', t.id, 'name', t.name, 'targetDepth', t."targetDepth",
          'targetWindow', t."targetWindow")
        FROM "DttTemplate" t WHERE t.id = s."templateId" AND ${visibleTemplate}))`,
    sessionsOfViewer,
  ),
  'GET /dtt/templates/active': one(
    `json_build_object(${template}, 'Segment', ${templateSegments(`'id', g.id, 'type', g.type, 'duration', g.duration, 'repeat', g.repeat`)})`,
    `"User" u JOIN "DttTemplate" t ON t.id = u."activeTemplateId" WHERE u.id = $1 AND ${visibleTemplate}`,
  ),
  'POST /dtt/templates/{id}': `WITH before AS (SELECT id, "scheduleType" FROM "User" WHERE id = $1 FOR UPDATE)
    UPDATE "User" u SET "activeTemplateId" = t.id, "scheduleType" = 'single' FROM before, "DttTemplate" t
    WHERE u.id = before.id AND t.id = $2 AND t."ownerId" = $1
    RETURNING json_build_object('ok', true, 'data', json_build_object('id', t.id, 'name', t.name, 'isActive', true,
      'scheduleTypeChanged', before."scheduleType" <> 'single',
      'Segment', ${templateSegments(`'id', g.id, 'type', g.type, 'duration', g.duration`)}))::text AS body`,
};

const statements = new Map<string, Statement>(
  Object.entries(routes).map(([route, text], index) => [route, { name: `route${index}`, text }]),
);

const server = createServer((request, response) => {
  respond(request, response).catch((error: unknown) => {
    process.stderr.write(`${error}\n`);
    send(response, 500, '{"ok":false,"error":"Internal server error"}');
  });
});

async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const viewer = await authenticate(pool, request.headers.authorization);
  if (viewer === null) {
    send(response, 401, '{"ok":false,"error":"Unauthorized"}');
    return;
  }
  const [path = '', query = ''] = (request.url ?? '').slice('/api/v1'.length).split('?', 2);
  const exact = statements.get(`${request.method} ${path}`);
  const slash = path.lastIndexOf('/') + 1;
  const statement = exact ?? statements.get(`${request.method} ${path.slice(0, slash)}{id}`);
  if (!statement) {
    send(response, 404, '{"ok":false,"error":"Not found"}');
    return;
  }
  if (request.method === 'POST' && (await readJson(request)).isActive !== true) {
    send(response, 400, '{"ok":false,"error":"Request body must include { isActive: true }"}');
    return;
  }
  const values = exact
    ? path.endsWith('active')
      ? [viewer]
      : [viewer, ...readPage(query)]
    : [viewer, Number(path.slice(slash))];
  const { rows } = await pool.query<{ body: string }>({ ...statement, values });
  if (rows[0]) send(response, 200, rows[0].body);
  else if (exact) send(response, 200, '{"ok":true,"data":null}');
  else send(response, 404, '{"ok":false,"error":"Not found"}');
}

function readPage(query: string): [limit: number, offset: number] {
  if (query === '') return [50, 0];
  const parameters = new URLSearchParams(query);
  return [Number(parameters.get('limit') ?? 50), Number(parameters.get('offset') ?? 0)];
}

async function readJson(request: IncomingMessage): Promise<{ isActive?: unknown }> {
  let text = '';
  for await (const chunk of request) text += chunk;
  return JSON.parse(text);
}

function send(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
  });
  response.end(body);
}

server.listen(0, '127.0.0.1', () => announce((server.address() as AddressInfo).port));
