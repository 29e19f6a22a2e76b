/**
 * A mirror that is read at random while it is pulled: each response shows what the upstream had at some moment since the
 * lists were last read, or is an error if the mirror does not have it yet.
 */

import { afterAll, expect, it } from 'vitest';
import { createToken } from '../../../../src/auth/tokens.ts';
import {
  Unavailable,
  type Upstream,
  UpstreamRejection,
} from '../../../../src/extensions/upstream/client/upstream.ts';
import { identifyByAnyRoute } from '../../../../src/extensions/upstream/mirror/account.ts';
import { sync, syncDetails } from '../../../../src/extensions/upstream/mirror/sync.ts';
import { graphqlOnce, openTestDatabase, openTestGateway, rest } from '../../../support/gateway.ts';
import { extensionsWith, stillMirror } from '../support/mirrorService.ts';
import { createRandom, type Random } from '../support/standIn/random.ts';

const time = '2026-01-01T00:00:00.000Z';

/** A session or a template, as the upstream has it by its id. */
type Whole = { id: number } & Record<string, unknown>;
const listOf = {
  session: ({ TrainerSegment, ...record }: Whole) => ({
    ...record,
    TrainerSegment: (TrainerSegment as Whole[]).map(({ id, type, passed, percentGrade, points }) => ({
      id,
      type,
      passed,
      percentGrade,
      points,
    })),
  }),
  template: ({ Segment: _, ...record }: Whole) => record,
};
type Kind = keyof typeof listOf;

/** The upstream of one account, which remembers the versions of each record. */
function createAccount(accountId: number, random: Random) {
  const records: Record<Kind, Map<number, Whole>> = { session: new Map(), template: new Map() };
  const history = new Map<string, Whole[]>();
  let version = 0;
  let isAway = false;
  /** The records that the lists had when they were last read. */
  let known: Record<Kind, number[]> = { session: [], template: [] };

  function write(kind: Kind, id: number): void {
    version++;
    const segments = Array.from({ length: 1 + random.below(3) }, (_, place) => ({
      id: id * 10 + place,
      type: 'bounce',
      passed: random.pick([true, false, null]),
      percentGrade: random.below(100),
      // The list has this field, so each change shows there.
      points: version,
      repsTarget: version,
      strokeLength: random.pick([version / 2, null]),
      order: place,
      createdAt: time,
    }));
    const whole: Whole =
      kind === 'session'
        ? {
            id,
            bubble_id: `s${id}`,
            name: `v${version}`,
            passed: null,
            created_at: time,
            trainer_id: 1,
            settings_id: null,
            TrainerSegment: segments,
          }
        : {
            id,
            bubbleId: `t${id}`,
            ownerId: accountId,
            name: `v${version}`,
            description: '',
            tagline: '',
            message: '',
            isPublic: false,
            isActive: false,
            handsFreeMode: true,
            targetDepth: version,
            targetWindow: 1,
            createdDate: time,
            updatedAt: new Date(Date.parse(time) + version).toISOString(),
            Segment: segments.map((segment) => ({
              id: segment.id,
              type: 'training',
              duration: segment.points,
              repeat: 1,
            })),
          };
    records[kind].set(id, whole);
    history.set(`${kind} ${id}`, [...(history.get(`${kind} ${id}`) ?? []), whole]);
  }
  const first = accountId * 1_000;
  for (let id = first + 1; id <= first + 5; id++) write('session', id);
  for (let id = first + 1; id <= first + 3; id++) write('template', id);

  const failure = { failure: 'test' };
  const missing = () => new UpstreamRejection('missing', { ...failure, status: 404 }, 'It was not found');
  const upstream: Upstream = {
    base: 'http://upstream.test/api/v1',
    requestCount: () => 0,
    async get(path) {
      await new Promise((done) => setTimeout(done, random.below(2)));
      if (isAway) throw new Unavailable('away', failure);
      if (path === '/users/me')
        return { id: accountId, username: `user${accountId}`, subscriptionTier: 'ultra' };
      const [, kind = '', rest = ''] = /^\/dtt\/(session|template)s(.*)$/.exec(path) ?? [];
      if (!isKind(kind)) return path === '/lkbx/templates/active' ? null : { data: [] };
      if (rest.startsWith('?')) return { data: [...records[kind].values()].reverse().map(listOf[kind]) };
      const record = records[kind].get(Number(rest.slice(1)));
      if (!record) throw missing();
      return record;
    },
    post: async () => undefined,
  };
  return {
    accountId,
    upstream,
    records,
    write,
    /** The versions of a record that may be shown: the one at the last read of the lists, and those since. */
    versions: (kind: Kind, id: number) => history.get(`${kind} ${id}`) ?? [],
    known: (kind: Kind) => known[kind],
    /** Notes that the lists were read: older versions must not be shown from now on. */
    noteListsRead() {
      known = { session: [...records.session.keys()], template: [...records.template.keys()] };
      for (const [key, versions] of history) history.set(key, versions.slice(-1));
    },
    isAvailable: () => !isAway,
    setAway(away: boolean) {
      isAway = away;
    },
  };
}
const isKind = (name: string): name is Kind => name in listOf;
type Account = ReturnType<typeof createAccount>;

const accounts: { account: Account; token: string }[] = [];
const random = createRandom(Number(process.env.ORACLE_SEED ?? 15));

const database = await openTestDatabase();
const byId = new Map<number, Account>();
for (const id of [1, 2, 3]) {
  const account = createAccount(id, random);
  byId.set(id, account);
  if (await step(account, 'lists')) account.noteListsRead();
  const { token } = await createToken(database.pool, `user${id}`, 'test');
  accounts.push({ account, token });
}
const services = new Map([...byId].map(([id, { upstream }]) => [id, stillMirror(database.pool, upstream)]));
const [still] = services.values();
if (!still?.upstream) throw new Error('there is no account');
const gateway = await openTestGateway(database, {
  extensions: extensionsWith(() => ({
    ...still,
    upstream: {
      ...still.upstream,
      wrapSql: (viewer, sql, watch) => services.get(viewer.id)?.upstream?.wrapSql(viewer, sql, watch) ?? sql,
    },
  })),
});
afterAll(() => gateway.close());

/** A step of a run, which is aborted after so many requests. Returns whether it was completed. */
async function step(
  { upstream, isAvailable }: Account,
  name: 'lists' | 'details',
  after = Number.POSITIVE_INFINITY,
): Promise<boolean> {
  if (!isAvailable()) return false;
  const account = await identifyByAnyRoute(upstream);
  const end = new AbortController();
  let requests = 0;
  const counting: Upstream = {
    ...upstream,
    async get(path, signal) {
      if (++requests > after) end.abort();
      signal?.throwIfAborted();
      return upstream.get(path, signal);
    },
  };
  try {
    const options = { pool: database.pool, upstream: counting, signal: end.signal };
    await (name === 'lists' ? sync({ ...options, listsOnly: true }) : syncDetails({ ...options, account }));
    return true;
  } catch (error) {
    if (!end.signal.aborted) throw error;
    return false;
  }
}

/** The fields of segments, with their names upstream. */
const fields = {
  session: {
    databaseId: 'id',
    points: 'points',
    gradePercent: 'percentGrade',
    passed: 'passed',
    repsTarget: 'repsTarget',
    strokeLength: 'strokeLength',
    order: 'order',
  },
  template: { databaseId: 'id', durationSeconds: 'duration', repeat: 'repeat' },
} as const;
const partOf = { session: 'TrainerSegment', template: 'Segment' } as const;

/** A random selection of segments, and what it shows of a version of a record. */
function select(kind: Kind) {
  const chosen = Object.entries(fields[kind]).filter(() => random.below(3) > 0);
  const names = chosen.length > 0 ? chosen : Object.entries(fields[kind]).slice(0, 1);
  return {
    text: `databaseId name segments { ${names.map(([name]) => name).join(' ')} }`,
    show: (record: Whole) => ({
      databaseId: record.id,
      name: record.name,
      segments: (record[partOf[kind]] as Whole[]).map((segment) =>
        Object.fromEntries(names.map(([name, there]) => [name, segment[there] ?? null])),
      ),
    }),
  };
}

const counts = { values: 0, errors: 0 };

async function readAtRandom({ account, token }: { account: Account; token: string }): Promise<void> {
  const kind = random.pick(['session', 'template'] as const);
  const ids = account.known(kind);
  const id = ids[random.below(ids.length)] ?? 0;
  if (random.below(3) === 0) {
    const { status, body, headers } = await rest(gateway, token, `/dtt/${kind}s/${id}`);
    if (status === 503) return expectRetryTime(Number(headers.get('Retry-After')));
    expect(status).toBe(200);
    // The response may have more fields than the upstream sends.
    expect(account.versions(kind, id).some((version) => includes(body.data, version))).toBe(true);
    counts.values++;
    return;
  }
  const { text, show } = select(kind);
  const name = kind === 'session' ? 'Session' : 'Template';
  const field = random.pick([
    `dtt${name}(databaseId: ${id}) { ${text} }`,
    `dtt${name}s(first: ${1 + random.below(4)}) { nodes { ${text} } }`,
    `node(id: "${Buffer.from(`Dtt${name}:${id}`).toString('base64url')}") { ... on Dtt${name} { ${text} } }`,
  ]);
  const { data, errors } = await graphqlOnce(gateway, token, `{ found: ${field} }`);
  if (errors) {
    expect(data).toEqual({ found: null });
    return expectRetryTime(Number(Object(errors[0]?.extensions).retryAfter));
  }
  expect(data.found).not.toBeNull();
  const found: { databaseId: number }[] = data.found.nodes ?? [data.found];
  for (const record of found) {
    const possible = account.versions(kind, record.databaseId).map(show);
    expect(possible, `${field} of ${account.accountId}`).toContainEqual(record);
  }
  counts.values += found.length;
}

/** Whether an object has all that another has, at any depth. */
function includes(actual: unknown, expected: unknown): boolean {
  if (typeof expected !== 'object' || expected === null) return actual === expected;
  return Object.entries(expected).every(([name, value]) => includes(Object(actual)[name], value));
}

/** An error for what the mirror does not have yet says when to retry. */
function expectRetryTime(seconds: number): void {
  expect(seconds).toBeGreaterThanOrEqual(1);
  counts.errors++;
}

it('a mirror shows what the upstream has had since the last lists, or an error that says when to retry', async () => {
  for (let round = 0; round < 250; round++) {
    const one = accounts[random.below(accounts.length)];
    if (!one) break;
    const { account } = one;
    const ids = [...account.records.session.keys()];
    switch (random.below(8)) {
      case 0:
        account.write('session', ids[random.below(ids.length)] ?? 0);
        break;
      case 1:
        account.write('session', account.accountId * 1_000 + ids.length + 1);
        break;
      case 2:
        account.write('template', account.accountId * 1_000 + 1 + random.below(3));
        break;
      case 3:
        if (await step(account, 'lists')) account.noteListsRead();
        break;
      case 4:
        await Promise.all([step(account, 'details', random.below(6)), readAtRandom(one), readAtRandom(one)]);
        break;
      case 5:
        account.setAway(random.below(2) === 0);
        break;
      default:
        await readAtRandom(one);
    }
  }
  expect(counts.values).toBeGreaterThan(50);
  expect(counts.errors).toBeGreaterThan(0);
}, 120_000);
