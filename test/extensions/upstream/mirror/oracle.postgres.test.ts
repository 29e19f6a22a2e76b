/**
 * A mirror that is read at random while it is pulled: each response shows what the upstream had at some moment since the
 * lists were last read, or is an error if the mirror does not have it yet.
 */

import { afterAll, expect, it } from 'vitest';
import { createToken } from '../../../../src/auth/tokens.ts';
import { Unavailable, type Upstream } from '../../../../src/extensions/upstream/client/upstream.ts';
import { readAccount } from '../../../../src/extensions/upstream/mirror/account.ts';
import { sync, syncDetails } from '../../../../src/extensions/upstream/mirror/sync.ts';
import { graphqlOnce, openTestDatabase, openTestGateway, rest } from '../../../support/gateway.ts';
import { addUser, createMemoryUpstream, upstreamOf } from '../support/memoryUpstream.ts';
import { extensionsWith, stillMirror } from '../support/mirrorService.ts';
import { createRandom } from '../support/standIn/random.ts';

type Kind = 'session' | 'template';

/** An account of an upstream in memory, which remembers the versions of each record. */
function createAccount(accountId: number) {
  const memory = createMemoryUpstream();
  const records = { session: memory.dttSessions, template: memory.dttTemplates };
  const history = new Map<string, number[]>();
  let version = 0;
  let isAway = false;
  /** The records that the lists had when they were last read. */
  let known: Record<Kind, number[]> = { session: [], template: [] };
  addUser(memory, accountId);

  function write(kind: Kind, id: number): void {
    version++;
    const written = { ownerId: accountId, version, isPrivate: true, trainerId: 1, templateId: null };
    records[kind].set(id, written);
    history.set(`${kind} ${id}`, [...(history.get(`${kind} ${id}`) ?? []), version]);
  }
  const first = accountId * 1_000;
  for (let id = first + 1; id <= first + 5; id++) write('session', id);
  for (let id = first + 1; id <= first + 3; id++) write('template', id);

  const healthy = upstreamOf(memory, accountId);
  const upstream: Upstream = {
    ...healthy,
    async get(path) {
      await new Promise((done) => setTimeout(done, random.below(2)));
      if (isAway) throw new Unavailable('away', { failure: 'test' });
      return healthy.get(path);
    },
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
type Account = ReturnType<typeof createAccount>;

const accounts: { account: Account; token: string }[] = [];
const random = createRandom(Number(process.env.ORACLE_SEED ?? 15));

const database = await openTestDatabase();
const byId = new Map<number, Account>();
for (const id of [1, 2, 3]) {
  const account = createAccount(id);
  byId.set(id, account);
  if (await step(account, 'lists')) account.noteListsRead();
  const { token } = await createToken(database.pool, `user ${id}`, 'test');
  accounts.push({ account, token });
}
const services = new Map([...byId].map(([id, { upstream }]) => [id, stillMirror(database.pool, upstream)]));
const [still] = services.values();
if (!still) throw new Error('there is no account');
const gateway = await openTestGateway(database, {
  extensions: extensionsWith(() => ({
    elsewhere: {
      ...still.elsewhere,
      wrapSql: (viewer, sql, watch) => services.get(viewer.id)?.elsewhere.wrapSql(viewer, sql, watch) ?? sql,
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
  const account = await readAccount(upstream);
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

/** What a version of a record shows in the fields of its segments. */
const fields: Record<Kind, Record<string, (id: number, version: number) => unknown>> = {
  session: {
    databaseId: (id) => id * 10,
    points: (_, version) => version,
    rawType: () => 'bounce',
    repsTarget: () => null,
    repsMeasured: (_, version) => version,
    order: () => 0,
  },
  template: { databaseId: (id) => id * 10, durationSeconds: (_, version) => version, repeat: () => 1 },
};
const nameOf = (kind: Kind, id: number, version: number) =>
  kind === 'session' ? `version ${version}` : `template ${id}, version ${version}`;

/** A random selection of segments, and what it shows of a version of a record. */
function select(kind: Kind) {
  const chosen = Object.entries(fields[kind]).filter(() => random.below(3) > 0);
  const entries = chosen.length > 0 ? chosen : Object.entries(fields[kind]).slice(0, 1);
  return {
    text: `databaseId name segments { ${entries.map(([name]) => name).join(' ')} }`,
    show: (id: number, version: number) => ({
      databaseId: id,
      name: nameOf(kind, id, version),
      segments: [Object.fromEntries(entries.map(([name, show]) => [name, show(id, version)]))],
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
    const { name, TrainerSegment, Segment } = Object(body.data);
    const [segment] = TrainerSegment ?? Segment;
    const shown = [name, segment.repsMeasured ?? segment.duration];
    expect(account.versions(kind, id).map((version) => [nameOf(kind, id, version), version])).toContainEqual(
      shown,
    );
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
    const { databaseId } = record;
    const possible = account.versions(kind, databaseId).map((version) => show(databaseId, version));
    expect(possible, `${field} of ${account.accountId}`).toContainEqual(record);
  }
  counts.values += found.length;
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
