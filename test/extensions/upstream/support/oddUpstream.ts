/**
 * An upstream that shares no type with this project, and is odd where the live service may be: fields that nobody documented, numbers as
 * text, times in other forms, fields left out, bare nulls, messages beside nulls, errors of its own, and all kinds of caching
 * headers. It records each response with what it knew of the account then.
 */

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { listen, shut } from '../../../support/listen.ts';

/** A response that the upstream has given. */
export interface GivenResponse {
  readonly account: number;
  readonly method: string;
  /** With the version segment and the query. */
  readonly target: string;
  /** How many writes the account had carried out by then. */
  readonly writes: number;
  /** When it was given, by `performance.now()`. */
  readonly at: number;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** What is wrong with the upstream. */
export type Trouble = 'none' | 'away' | 'broken' | 'busy' | 'writes only';

export interface OddUpstream {
  readonly base: string;
  readonly responses: readonly GivenResponse[];
  trouble: Trouble;
  /** The active templates of an account, by how many writes it had carried out. */
  activeTemplates(account: number): readonly number[];
  /** How long, in milliseconds, a response takes at most once it is made; 0 at first. */
  latest: number;
  close(): void;
}

interface OddAccount {
  readonly id: number;
  writes: number;
  readonly activeTemplates: number[];
}

const basePath = '/api/v1';

/** A number that depends on a text alone. */
function hashOf(text: string): number {
  let hash = 7;
  for (const character of text) hash = (hash * 31 + (character.codePointAt(0) ?? 0)) % 1_000_003;
  return hash;
}

/** What caching headers a path has. Some responses differ each time, and have no validator. */
function cachingOf(path: string, tag: string): Record<string, string> {
  const forms: Record<string, string>[] = [
    {},
    { ETag: `"${tag}"` },
    { ETag: `W/"${tag}"`, Vary: 'Accept-Language' },
    { ETag: `"${tag}"`, 'Cache-Control': 'no-cache' },
    { 'Cache-Control': 'Max-Age=1, private' },
    { 'Cache-Control': 'no-store' },
    { 'Cache-Control': 'private', 'X-RateLimit-Remaining': '17' },
    { Expires: '0' },
  ];
  return forms[hashOf(path) % forms.length] ?? {};
}

const templates = [11, 12, 13];

/** The data of the paths that the mirror reads, each with something odd. */
function dataOf({ id, writes, activeTemplates }: OddAccount, path: string): unknown {
  const active = activeTemplates.at(-1);
  const template = (number: number) => ({
    id: String(number + 100 * id),
    bubbleId: `t-${id}-${number}`,
    ownerId: id,
    name: `Program ${number} after ${writes}`,
    isPublic: false,
    isActive: number === active,
    handsFreeMode: false,
    targetDepth: '50',
    targetWindow: 10,
    createdDate: '2026-01-01T10:00:00+00:00',
    updatedAt: '2026-02-01T15:00:00Z',
    moodOfTheDay: writes,
  });
  const list = (data: unknown[]) => ({ data, total: `${data.length}` });
  switch (path) {
    case '/users/me':
      return { id, username: `odd-${id}`, accountType: 'user', subscriptionTier: 'ultra', shoeSize: '42½' };
    case '/dtt':
      return list([
        {
          id: 1 + 100 * id,
          bubbleId: `d-${id}`,
          ownerId: id,
          macAddress: 'aa:bb:cc:dd:ee:ff',
          serialNumber: 1001,
        },
      ]);
    case '/dtt/templates':
      return list(templates.map(template));
    case '/dtt/sessions':
      return [
        {
          id: 5 + 100 * id,
          bubble_id: `s-${id}`,
          created_at: '2026-02-16T18:00:00.123456Z',
          trainer_id: 1 + 100 * id,
          TrainerSegment: [{ id: 7 + 100 * id, type: 'freeform', points: '12' }],
        },
      ];
    default:
  }
  const [, number] = /^\/dtt\/(?:templates|settings)\/(\d+)$/.exec(path) ?? [];
  const known = templates.find((each) => String(each + 100 * id) === number);
  return (
    known && {
      ...template(known),
      Segment: [{ id: known + 100 * id, type: 'warmup', duration: 60, tempo: null }],
    }
  );
}

const send = (
  response: ServerResponse,
  { status, headers, body }: Omit<GivenResponse, 'at'>,
  isHead: boolean,
) => {
  response
    .writeHead(status, { ...headers, 'Content-Length': Buffer.byteLength(body) })
    .end(isHead ? '' : body);
};

export async function openOddUpstream(tokens: Readonly<Record<string, number>>): Promise<OddUpstream> {
  const responses: GivenResponse[] = [];
  const accounts = new Map<number, OddAccount>();
  for (const id of Object.values(tokens)) accounts.set(id, { id, writes: 0, activeTemplates: [11] });
  let nonce = 0;

  /** The response to a read, without what makes it cacheable. */
  function readOf(account: OddAccount, path: string): { status: number; body: string } {
    const data = dataOf(account, path);
    if (data !== undefined)
      return { status: 200, body: JSON.stringify({ ok: true, data, served: `${nonce++}` }) };
    // The mirror takes this for a list that is not offered.
    if (/^\/(lkbx|ossm)/.test(path))
      return { status: 404, body: `{"ok":false,"error":"none of that: ${path}"}` };
    const kind = hashOf(path) % 6;
    const said = `${path} after ${account.writes}`;
    if (kind === 0)
      return { status: 404, body: `{"ok":false,"error":"no such thing: ${said}","code":"E17"}` };
    if (kind === 1)
      return { status: 200, body: `{"ok":true,"data":null,"message":"nothing here, ${nonce++}"}` };
    if (kind === 2) return { status: 200, body: `null ` };
    if (kind === 3)
      return {
        status: 200,
        body: `{ "ok" : true , "data" : [1.50, 1e3, "${said}", {"when":"16/02/2026"}] }`,
      };
    if (kind === 4) return { status: 403, body: `<p>not for you, ${said}` };
    return { status: 200, body: `{"ok":true,"data":{"distanceTravelled":"12.0","a":${nonce++}}}` };
  }

  function write(account: OddAccount, path: string, body: string): { status: number; body: string } {
    if (path.endsWith('/refused')) return { status: 422, body: '{"ok":false,"error":"refused"}' };
    account.writes++;
    const [, number] = /^\/dtt\/templates\/(\d+)$/.exec(path) ?? [];
    const named = Number(number) - 100 * account.id;
    const isActivation = templates.includes(named) && body.includes('isActive');
    account.activeTemplates[account.writes] = isActivation
      ? named
      : (account.activeTemplates[account.writes - 1] ?? 11);
    // It has carried the write out all the same.
    if (path.endsWith('/confused')) return { status: 500, body: 'oops' };
    return {
      status: 200,
      body: JSON.stringify({
        ok: true,
        data: { id: Number(number), isActive: true, scheduleTypeChanged: false, Segment: [] },
      }),
    };
  }

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let sent = '';
    for await (const chunk of request) sent += chunk;
    const { method = '', url: target = '' } = request;
    const account = accounts.get(tokens[(request.headers.authorization ?? '').replace('Bearer ', '')] ?? 0);
    const path = (target.split('?')[0] ?? '').slice(basePath.length);
    const record = (status: number, body: string, headers: Record<string, string> = {}) => {
      const given = {
        account: account?.id ?? 0,
        method,
        target,
        writes: account?.writes ?? 0,
        at: performance.now(),
        status,
        headers,
        body,
      };
      responses.push(given);
      const late = upstream.latest * Math.random();
      setTimeout(() => send(response, given, method === 'HEAD'), late);
    };
    const isRead = method === 'GET' || method === 'HEAD';
    response.sendDate = false;
    if (!account) return record(401, '{"ok":false,"error":"who?"}');
    if (upstream.trouble === 'away') return void response.destroy();
    if (upstream.trouble === 'broken')
      return record(503, 'closed for repairs', { 'Content-Type': 'text/plain' });
    if (upstream.trouble === 'busy')
      return record(429, '{"ok":false,"error":"slow down"}', { 'Retry-After': '1' });
    if (upstream.trouble === 'writes only' && isRead) return record(500, 'reads are broken');
    const { status, body } = isRead ? readOf(account, path) : write(account, path, sent);
    const caching = isRead ? cachingOf(path, `${account.id}-${account.writes}-${hashOf(body)}`) : {};
    const headers = {
      'Content-Type': 'application/json',
      'X-Odd': `${hashOf(path)}`,
      ...(!isRead && { 'X-Writes': `${account.writes}` }),
      ...caching,
    };
    if (caching.ETag && status === 200 && request.headers['if-none-match'] === caching.ETag)
      return record(304, '', headers);
    record(status, body, headers);
  }

  const server = createServer((request, response) => {
    respond(request, response).catch(() => response.destroy());
  });
  const upstream: OddUpstream = {
    base: `${await listen(server)}${basePath}`,
    responses,
    trouble: 'none',
    latest: 0,
    activeTemplates: (id) => accounts.get(id)?.activeTemplates ?? [],
    close: () => shut(server),
  };
  return upstream;
}
