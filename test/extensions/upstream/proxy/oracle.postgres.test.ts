/**
 * The oracle of REST in front of an upstream: each response equals one that the upstream has given for that URL and account, byte for byte,
 * within the age that is allowed, and never one from before the account's own last write.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, it } from 'vitest';
import type { ChangeFeed, ChangeListener } from '../../../../src/database/feed/changeFeed.ts';
import { openTestDatabase, openTestGateway, type TestGateway } from '../../../support/gateway.ts';
import { activate as activateTemplate, arrive, ask, mirrorOf } from '../support/frontedService.ts';
import { type Asked, cut } from '../support/standIn/faults.ts';
import { createRandom } from '../support/standIn/random.ts';
import { failure, type Reply, success } from '../support/standIn/reads.ts';
import { createStandIn } from '../support/standIn/standIn.ts';

/** For how long a response is fresh, in seconds. */
const lifetime = 1;
/** How much later, in milliseconds, a response may be sent than the clock says: timers and requests take their time, the more the busier the machine is. */
const slack = () => 400 + 5 * lateness;
/** How late a timer with a statement after it was at most. */
let lateness = 0;

/** How late, in milliseconds, an announcement arrives at most. */
const latestAnnouncement = 60;

const tokens = { 'token-a': 1, 'second-a': 1, 'token-b': 2 };
const seconds = Number(process.env.FUZZ_MINUTES ?? 0) * 60 || 3;

async function openGateway(): Promise<TestGateway> {
  return openTestGateway(
    { ...database, openChangeFeed: async () => slow(await database.openChangeFeed()), close: async () => {} },
    {
      settings: { UPSTREAM_URL: upstream.base, UPSTREAM_RATE: '0', UPSTREAM_INTERVAL: String(lifetime) },
      logLevel: 'fatal',
      extensions: mirrorOf(upstream.base, {
        timing: { timeout: 10_000, retries: 0 },
        waits: { arrival: 4_000, freshness: 4_000, awakening: 4_000 },
      }),
    },
  );
}

/** A feed whose announcements arrive late, and at different times. */
function slow(feed: ChangeFeed): ChangeFeed {
  const { subscribe, catchUp } = feed;
  const arriving = new Set<Promise<void>>();
  return Object.create(feed, {
    subscribe: {
      value: (listener: ChangeListener) =>
        subscribe((change) => {
          const arrival = sleep(Math.random() * latestAnnouncement).then(() => listener(change));
          arriving.add(arrival);
          arrival.finally(() => arriving.delete(arrival));
        }),
    },
    catchUp: {
      async value() {
        const hasCaughtUp = await catchUp?.();
        await Promise.all(arriving);
        return hasCaughtUp;
      },
    },
  });
}

const accountIds = [1, 2] as const;
const upstream = await createStandIn({
  rate: 1_000_000,
  accounts: accountIds.map((id) => ({
    id,
    username: `user ${id}`,
    // The entries of an object with these keys.
    tokens: Object.keys(tokens).filter((token) => tokens[token as keyof typeof tokens] === id),
  })),
});
/** A response that the upstream has given, with what it knew of the account then. */
interface GivenResponse {
  readonly account: number;
  readonly target: string;
  /** How many writes the account had carried out by then. */
  readonly writes: number;
  /** When it was given, by `performance.now()`. */
  readonly at: number;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}
const given: GivenResponse[] = [];
/** The responses of an upstream that carries nothing out. */
const troubles = {
  away: cut,
  broken: { status: 503, body: 'closed for repairs' },
  busy: { ...failure(429, 'slow down'), headers: { 'Retry-After': '1' } },
} as const satisfies Record<string, Reply>;
/** What is wrong with the upstream. */
let trouble: 'none' | 'writes only' | keyof typeof troubles = 'none';
function setTrouble(now: typeof trouble): void {
  trouble = now;
  upstream.behave();
  if (now in troubles) upstream.misbehave({ instead: () => Object(troubles)[now] });
  upstream.misbehave({ after: respond });
}
/** The active templates of each account, by how many writes it had carried out. */
const activeTemplates = new Map<number, (number | null)[]>(accountIds.map((id) => [id, [activeOf(id)]]));
let nonce = 0;
setTrouble('none');

function activeOf(account: number): number | null {
  return upstream.account(account).activeTemplateId;
}

const database = await openTestDatabase();
const gateways = [await openGateway(), await openGateway()];
afterAll(async () => {
  for (const gateway of gateways ?? []) {
    await gateway.close();
  }
  await database.close();
  await upstream.stop();
});

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

/** What the upstream says in place of a 404, such as a bare null, or JSON with odd spaces and numbers. */
function oddBody(path: string, writes: number): Reply {
  const said = `${path} after ${writes}`;
  const odd: readonly [status: number, body: string][] = [
    [404, `{"ok":false,"error":"no such thing: ${said}","code":"E17"}`],
    [200, `{"ok":true,"data":null,"message":"nothing here, ${nonce++}"}`],
    [200, 'null '],
    [200, `{ "ok" : true , "data" : [1.50, 1e3, "${said}", {"when":"16/02/2026"}] }`],
    [403, `<p>not for you, ${said}`],
    [200, `{"ok":true,"data":{"distanceTravelled":"12.0","a":${nonce++}}}`],
  ];
  const [status, body] = odd[hashOf(path) % odd.length] ?? [200, ''];
  return { status, body };
}

/** Responds as the stand-in does, but with odd bodies and caching headers, and after a while; and notes each response. */
async function respond(own: Reply, { account, method, path, target }: Asked): Promise<Reply> {
  const reply = account ? replyOf(own, account.id, method, path) : own;
  if (reply === cut || !account) return reply;
  const isRead = method === 'GET' || method === 'HEAD';
  const writes = writesOf(account.id);
  const body =
    typeof reply.body === 'string' ? reply.body : JSON.stringify({ ...Object(reply.body), served: nonce++ });
  const caching =
    isRead && reply.status < 500 && trouble === 'none'
      ? cachingOf(path, `${account.id}-${writes}-${hashOf(body)}`)
      : {};
  const headers = {
    'Content-Type': 'application/odd',
    'X-Odd': `${hashOf(path)}`,
    ...(!isRead && { 'X-Writes': `${writes}` }),
    ...caching,
    ...reply.headers,
  };
  const sent = { status: reply.status, headers, body };
  given.push({ account: account.id, target, writes, at: performance.now(), ...sent });
  await sleep(latest * Math.random());
  return sent;
}

/** How long, in milliseconds, a response takes at most once it is made. */
const latest = 40;

const writesOf = (account: number) => (activeTemplates.get(account)?.length ?? 1) - 1;

function replyOf(own: Reply, account: number, method: string, path: string): Reply {
  const isRead = method === 'GET' || method === 'HEAD';
  if (trouble in troubles) return own;
  if (isRead) {
    if (trouble === 'writes only') return { status: 500, body: 'reads are broken' };
    return path.startsWith('/odd') ? oddBody(path, writesOf(account)) : own;
  }
  if (path.endsWith('/refused')) return failure(422, 'refused');
  activeTemplates.get(account)?.push(activeOf(account));
  // It has carried the write out all the same.
  if (path.endsWith('/confused')) return { status: 500, body: 'oops' };
  return own.status === 200 ? own : success({ done: true });
}

/** Seeds are printed by the failure, so that it can be repeated. */
const seed = Number(process.env.FUZZ_SEED ?? Math.floor(Math.random() * 1e9));
const { below: random } = createRandom(seed);
const pick = <T>(items: readonly T[]): T => items[random(items.length)] as T;

const paths = [
  '/users/me',
  '/dtt',
  '/dtt/templates',
  '/dtt/sessions',
  '/dtt/%31',
  '/lkbx/templates/active',
  ...Array.from({ length: 8 }, (_, index) => `/odd/${index}?x=${index % 3}`),
];

/** What a client sees of a response, without what the gateway adds. */
const added = new Set([
  ...['age', 'connection', 'content-length', 'date', 'dovetail-position', 'keep-alive', 'ratelimit'],
  ...['ratelimit-policy', 'transfer-encoding', 'x-content-type-options', 'x-request-id'],
]);
const seenHeaders = (headers: Iterable<readonly [string, string]>) =>
  Object.fromEntries(
    [...headers]
      .map(([name, value]) => [name.toLowerCase(), value])
      .filter(([name = '']) => !added.has(name)),
  );

/** How many writes of each account have been acknowledged, and since when the upstream has had no trouble. */
const acknowledged = new Map<number, number>();
let troubleUntil = 0;

/** How many responses of each kind were compared. */
const tally = { forwarded: 0, stored: 0, graphql: 0, writes: 0, activations: 0 };

const noteWritten = (account: number, writes: number) =>
  acknowledged.set(account, Math.max(acknowledged.get(account) ?? 0, writes));

/** The writes that no client has a response to yet. Nothing is promised of them. */
const underway = new Set<{ account: number }>();

/** @param isPlain whether the request has no headers that concern caches. */
async function read(token: keyof typeof tokens, path = pick(paths), isPlain = false): Promise<void> {
  const account = tokens[token];
  const target = `/api/v1${path}`;
  const method = random(8) === 0 ? 'HEAD' : 'GET';
  const tag = !isPlain && random(4) === 0 ? lastTag.get(`${account} ${target}`) : undefined;
  const control = isPlain
    ? undefined
    : pick([undefined, undefined, undefined, 'no-cache', 'max-age=0', 'MAX-AGE=1']);
  const language = isPlain ? undefined : pick([undefined, undefined, 'de', 'fr']);
  const headers = {
    Authorization: `Bearer ${token}`,
    ...(control && { 'Cache-Control': control }),
    ...(tag && { 'If-None-Match': tag }),
    ...(language && { 'Accept-Language': language }),
  };
  const began = performance.now();
  const writes = acknowledged.get(account) ?? 0;
  const response = await fetch(`${pick(gateways).url}${target}`, { method, headers, redirect: 'manual' });
  const body = await response.text();
  const ended = performance.now();
  const etag = response.headers.get('ETag');
  if (etag) lastTag.set(`${account} ${target}`, etag);
  const described = `seed ${seed}: ${method} ${target} ${JSON.stringify(headers)} gave ${response.status} ${body} ${JSON.stringify([...response.headers])}`;
  // There is no response of the upstream.
  if ([502, 503, 504].includes(response.status) && (method === 'HEAD' || body.includes('The upstream'))) {
    expect(troubleUntil, described).toBeGreaterThanOrEqual(began - slack());
    return;
  }
  const mayBeStale = troubleUntil >= began - slack() && control === undefined;
  const longest = mayBeStale
    ? Number.POSITIVE_INFINITY
    : control === 'no-cache'
      ? 0
      : control === 'max-age=0'
        ? // A read that is under way is shared.
          response.headers.has('Age')
          ? 5
          : slack()
        : lifetime * 1_000 + slack();
  const matches = (given: GivenResponse) => {
    if (given.account !== account || given.target !== target || given.writes < writes) return false;
    if (given.at < began - longest || given.at > ended) return false;
    const isSame = given.status === response.status && (method === 'HEAD' || given.body === body);
    const ofTag =
      response.status === 304 && given.headers.ETag === etag && tag !== undefined && sameTag(tag, etag);
    if (ofTag) return true;
    return (
      isSame &&
      JSON.stringify(sorted(seenHeaders(Object.entries(given.headers)))) ===
        JSON.stringify(sorted(seenHeaders(response.headers)))
    );
  };
  const match = given.findLast(matches);
  if (!match) {
    const same = given.filter((each) => each.account === account && each.target === target).slice(-4);
    expect.fail(
      `${described}\nbegan ${began}, writes ${writes}, longest ${longest}; given: ${JSON.stringify(same)}`,
    );
  }
  const age = response.headers.get('Age');
  tally[age === null ? 'forwarded' : 'stored']++;
  if (age !== null)
    expect(Number(age), described).toBeLessThanOrEqual((ended - match.at) / 1_000 + lifetime * 3600);
}
const lastTag = new Map<string, string>();
const sorted = (record: Record<string, string | undefined>) => Object.entries(record).sort();
const sameTag = (one: string, other: string | null) => one.replace('W/', '') === other?.replace('W/', '');

async function write(token: keyof typeof tokens): Promise<void> {
  const account = tokens[token];
  const method = pick(['POST', 'PATCH', 'DELETE', 'PUT']);
  const template = pick([...upstream.account(account).ownTemplates]);
  const activation = `/dtt/templates/${template}`;
  const path = pick([activation, `/dtt/sessions/${account}`, '/odd/1', '/odd/confused', '/odd/refused']);
  const isActivation = path === activation;
  const written = { account };
  underway.add(written);
  const response = await fetch(`${pick(gateways).url}/api/v1${path}`, {
    method: isActivation ? 'POST' : method,
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    ...(isActivation ? { body: '{"isActive":true}' } : method !== 'DELETE' && { body: '{"x":1}' }),
  });
  await response.text();
  underway.delete(written);
  if (response.status === 200) tally.writes++;
  // A response of the gateway's own has no such header.
  noteWritten(account, Number(response.headers.get('X-Writes')));
}

/** A client that reads, writes and reads again at once, each through any gateway. */
async function writeAndRead(token: keyof typeof tokens): Promise<void> {
  const path = pick(paths);
  const readTwice = () => Promise.all([read(token, path, true), read(token, path, true)]);
  await readTwice();
  await Promise.all([readTwice(), write(token)]);
  await readTwice();
}

async function activate(token: keyof typeof tokens): Promise<void> {
  const account = tokens[token];
  const template = pick([...upstream.account(account).ownTemplates]);
  const written = { account };
  underway.add(written);
  const { body } = await activateTemplate(pick(gateways), token, template);
  expect(JSON.stringify(body)).not.toContain('BAD_USER_INPUT');
  underway.delete(written);
  if (body.errors) return;
  tally.activations++;
  // GraphQL does not say which of the writes it was.
  const isOnly = ![...underway].some((other) => other.account === account);
  if (isOnly) noteWritten(account, writesOf(account));
}

/** GraphQL shows the account's last write, or says that it cannot. */
async function readGraphql(token: keyof typeof tokens): Promise<void> {
  const account = tokens[token];
  const writes = acknowledged.get(account) ?? 0;
  const query = '{ viewer { activeDttTemplate { databaseId } } }';
  const { status, body } = await ask(pick(gateways), token, query);
  if (status !== 200 || body.errors) return;
  tally.graphql++;
  const shown = body.data.viewer.activeDttTemplate?.databaseId;
  const since = activeTemplates.get(account)?.slice(writes);
  expect(since, `seed ${seed}: GraphQL after ${writes} writes`).toContain(shown);
}

it(
  'equals what the upstream has given within the allowed age, and since the last write of the account',
  async () => {
    const users = Object.keys(tokens) as (keyof typeof tokens)[];
    // A token that is new while the upstream is away is checked again only seconds later.
    for (const gateway of gateways) for (const token of users) await arrive(gateway, token);
    const end = performance.now() + seconds * 1_000;
    async function measure(): Promise<void> {
      while (performance.now() < end) {
        const asleep = performance.now();
        await sleep(20);
        await database.pool.query('SELECT 1');
        lateness = Math.max(lateness, performance.now() - asleep - 20);
      }
    }
    async function use(): Promise<void> {
      while (performance.now() < end) {
        const token = pick(users);
        const what = random(100);
        if (what < 88) await read(token);
        else if (what < 90) await write(token);
        else if (what < 94) await writeAndRead(token);
        else if (what < 95) await activate(token);
        else if (what < 98) await readGraphql(token);
        else await sleep(random(600));
      }
    }
    async function makeTrouble(): Promise<void> {
      while (performance.now() < end) {
        await sleep(1_500 + random(2_500));
        setTrouble(pick(['away', 'broken', 'busy', 'writes only']));
        troubleUntil = Number.POSITIVE_INFINITY;
        await sleep(300 + random(2_500));
        setTrouble('none');
        // A pause that the upstream has asked for goes on.
        troubleUntil = performance.now() + 1_100;
      }
    }
    await Promise.all([use(), use(), use(), use(), use(), use(), makeTrouble(), measure()]);
    // Of each kind, something has to be compared. On a busy machine that may not have been so yet.
    const kinds = {
      forwarded: read,
      stored: read,
      graphql: readGraphql,
      writes: write,
      activations: activate,
    };
    for (const [kind, ask] of Object.entries(kinds) as [keyof typeof tally, typeof write][])
      while (tally[kind] === 0) await ask('token-a');
  },
  (seconds + 120) * 1_000,
);
