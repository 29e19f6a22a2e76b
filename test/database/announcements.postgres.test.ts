/** Announcements of changes beside open transactions, at each isolation level, and with unusual session settings. */

import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { changesOf } from '../../src/database/feed/changeFeed.ts';
import { databaseWith } from '../support/setUp.ts';

const { database, alice, bob } = await databaseWith('alice', 'bob');

const levels = ['READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE'] as const;

/**
 * One in so many interleavings is run, since all of them are thousands and take minutes: INTERLEAVINGS=1 runs them all. The
 * number divides neither that of levels nor that of orders, so that each writer and viewer meet at different ones.
 */
const stride = Number(process.env.INTERLEAVINGS ?? 31);

/** The records that one interleaving works on, which are created for each. */
interface Scene {
  /** The user who gets access to the record. */
  readonly viewer: number;
  /** The user who has had access from the beginning. */
  readonly owner: number;
  /** A template with three segments, and another one of the same owner with one segment. */
  readonly id: number;
  readonly other: number;
}

/** The statements of a transaction. Those of the other transaction may run between any two of them. */
type Script = (scene: Scene) => readonly string[];

const segment = '"DttTemplateSegment"';
const into = `INSERT INTO ${segment} ("templateId", position, type, duration)`;

/** Changes that have to be announced to every user who sees the template. Statements of other kinds fire the same triggers. */
const writers: Record<string, Script> = {
  'updates the template': ({ id }) => [`UPDATE "DttTemplate" SET name = 'New' WHERE id = ${id}`],
  'updates it after a savepoint that is rolled back': ({ id }) => [
    `SAVEPOINT a; UPDATE "DttTemplate" SET name = 'Lost' WHERE id = ${id}; ROLLBACK TO a`,
    `UPDATE "DttTemplate" SET name = 'New' WHERE id = ${id}`,
  ],
  'deletes the template': ({ id }) => [`DELETE FROM "DttTemplate" WHERE id = ${id}`],
  'deletes the owner': ({ owner }) => [`DELETE FROM "User" WHERE id = ${owner}`],
  'inserts a segment': ({ id }) => [`${into} VALUES (${id}, 9, 'training', 60)`],
  'updates a segment': ({ id }) => [`UPDATE ${segment} SET duration = 1 WHERE "templateId" = ${id}`],
  'deletes a segment': ({ id }) => [`DELETE FROM ${segment} WHERE "templateId" = ${id} AND position = 1`],
  'moves a segment in': ({ id, other }) => [
    `UPDATE ${segment} SET "templateId" = ${id}, position = 6 WHERE "templateId" = ${other}`,
  ],
  'moves a segment out': ({ id, other }) => [
    `UPDATE ${segment} SET "templateId" = ${other}, position = 6 WHERE "templateId" = ${id} AND position = 2`,
  ],
};

const imports = '"DttLibraryEntry" ("userId", "templateId")';

/** Ways in which a viewer gets access to the template. */
const viewers: Record<string, Script> = {
  'imports it': ({ viewer, id }) => [`INSERT INTO ${imports} VALUES (${viewer}, ${id})`],
  'changes an import of another template into one of this': ({ viewer, id, other }) => [
    `UPDATE "DttLibraryEntry" SET "templateId" = ${id} WHERE "userId" = ${viewer} AND "templateId" = ${other}`,
  ],
  'takes over the import of another user': ({ viewer, id }) => [
    `UPDATE "DttLibraryEntry" SET "userId" = ${viewer}
     WHERE "userId" <> ${viewer} AND "templateId" = ${id} AND "importedAt" IS NOT NULL`,
  ],
  'becomes its owner': ({ viewer, id }) => [
    `UPDATE "DttTemplate" SET "ownerId" = ${viewer} WHERE id = ${id}`,
  ],
};

/** All orders in which the steps of two transactions can follow each other: true is a step of the first. */
function interleavings(first: number, second: number): boolean[][] {
  if (first === 0) return [Array<boolean>(second).fill(false)];
  if (second === 0) return [Array<boolean>(first).fill(true)];
  return [
    ...interleavings(first - 1, second).map((rest) => [true, ...rest]),
    ...interleavings(first, second - 1).map((rest) => [false, ...rest]),
  ];
}

/** A connection that runs a transaction step by step, and knows when a step waits for a lock. */
async function openActor() {
  const client = new pg.Client(database.pool.options);
  await client.connect();
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  const pid = rows[0]?.pid ?? 0;
  let pending: Promise<unknown> | undefined;
  let failure: Error | undefined;
  /** How many rows the last step has changed; 1 where PostgreSQL does not report it. */
  let changed = 0;

  async function isBlocked(): Promise<boolean> {
    const { rows } = await database.pool.query<{ blocked: boolean }>(
      'SELECT cardinality(pg_blocking_pids($1)) > 0 AS blocked',
      [pid],
    );
    return rows[0]?.blocked ?? false;
  }

  /** Waits until the step is done, or waits for a lock. Returns whether it waits. */
  async function waits(): Promise<boolean> {
    let done = false;
    void pending?.then(() => {
      done = true;
    });
    while (pending && !done && !(await isBlocked()));
    if (done) pending = undefined;
    return pending !== undefined;
  }

  return {
    pid,
    waits,
    /** Runs a step, and returns when it is done or waits for a lock. */
    async run(sql: string): Promise<void> {
      failure = undefined;
      pending = client.query(sql).then(
        ({ rowCount }) => {
          if (sql !== 'COMMIT') changed = rowCount ?? 1;
        },
        (error) => {
          failure = error;
        },
      );
      await waits();
    },
    failure: () => failure,
    changed: () => changed,
    end: () => client.end(),
  };
}

type Actor = Awaited<ReturnType<typeof openActor>>;

/** Errors that PostgreSQL may return to a transaction that conflicts with another. A client retries it then. */
const conflicts = new Set(['40001', '40P01', '23503', '23505']);

/**
 * Runs the steps of two transactions in this order, except that one which waits for a lock lets the other continue. Returns
 * the actors that have committed, in the order of their commits.
 */
async function interleave(
  actors: readonly [Actor, Actor],
  scripts: readonly [readonly string[], readonly string[]],
  order: readonly boolean[],
): Promise<Actor[]> {
  const committed: Actor[] = [];
  const left = scripts.map((script) => [...script, 'COMMIT']);
  const over = new Set<Actor>();
  const last = new Map<Actor, string>();
  const turns = order.map((isFirst) => (isFirst ? 0 : 1));

  async function settle(actor: Actor): Promise<boolean> {
    if (await actor.waits()) return false;
    const error = actor.failure();
    if (error && !over.has(actor)) {
      if (!('code' in error) || !conflicts.has(String(error.code))) throw error;
      over.add(actor);
      await actor.run('ROLLBACK');
    } else if (last.get(actor) === 'COMMIT' && !over.has(actor)) {
      over.add(actor);
      committed.push(actor);
    }
    return true;
  }

  while (over.size < 2) {
    const turn = turns.shift();
    // At the end of the order, each transaction that is not blocked continues.
    const candidates = turn === undefined ? ([0, 1] as const) : ([turn] as const);
    for (const which of candidates) {
      const actor = actors[which as 0 | 1];
      if (over.has(actor) || !(await settle(actor)) || over.has(actor)) continue;
      const step = left[which]?.shift();
      if (step === undefined) continue;
      last.set(actor, step);
      await actor.run(step);
      await settle(actor);
    }
  }
  return committed;
}

interface Announcement {
  readonly pid: number;
  readonly text: string;
}

it.each([
  ['7 User', [{ kind: 'user', userId: 7, table: 'User' }]],
  ['7,8 User', [7, 8].map((userId) => ({ kind: 'user', userId, table: 'User' }))],
  ['* User', [{ kind: 'all', table: 'User' }]],
  ['*', [{ kind: 'all' }]],
  ['of another program', [{ kind: 'all' }]],
])('the announcement %j is of %j', (payload, changes) => expect(changesOf(payload)).toEqual(changes));

describe('a user who gets access to a record while another transaction changes it', () => {
  let listener: pg.Client;
  let heard: Announcement[] = [];
  let marks = 0;
  let actors: readonly [writer: Actor, viewer: Actor];
  beforeAll(async () => {
    listener = new pg.Client(database.pool.options);
    listener.on('notification', ({ processId, payload = '' }) =>
      heard.push({ pid: processId, text: payload }),
    );
    await listener.connect();
    await listener.query('LISTEN dovetail');
    actors = [await openActor(), await openActor()];
  });
  afterAll(async () => {
    for (const actor of actors ?? []) await actor.end();
    await listener?.end();
  });

  /** All that the two have announced by now, in the order in which they committed. */
  async function announcedByThem(): Promise<Announcement[]> {
    const mark = `mark ${marks++}`;
    await database.pool.query(`SELECT pg_notify('dovetail', $1)`, [mark]);
    await expect.poll(() => heard.some(({ text }) => text === mark), { interval: 1 }).toBe(true);
    const announced = heard.filter(({ pid }) => actors.some((actor) => actor.pid === pid));
    heard = [];
    return announced;
  }

  let scenes = 0;

  async function prepare(): Promise<Scene> {
    const key = `scene-${scenes++}`;
    const { rows } = await database.pool.query<{ id: number }>(
      `INSERT INTO "User" (username) VALUES ('${key}') RETURNING id`,
    );
    const owner = rows[0]?.id ?? 0;
    const viewer = alice.userId;
    const templates = await database.pool.query<{ id: number }>(
      `INSERT INTO "DttTemplate" ("bubbleId", "ownerId", name, "targetDepth", "targetWindow")
       VALUES ('${key}', ${owner}, 'Old', 1, 1), ('${key}-other', ${owner}, 'Other', 1, 1) RETURNING id`,
    );
    const [id = 0, other = 0] = templates.rows.map((row) => row.id);
    await database.pool.query(
      `${into} VALUES (${id}, 0, 'a', 1), (${id}, 1, 'b', 1), (${id}, 2, 'c', 1), (${other}, 0, 'd', 1);
       INSERT INTO ${imports} VALUES (${viewer}, ${other}), (${bob.userId}, ${id})`,
    );
    return { viewer, owner, id, other };
  }

  interface Case {
    readonly name: string;
    readonly writer: Script;
    readonly viewer: Script;
    readonly levels: readonly [string, string];
    readonly order: readonly boolean[];
  }

  function* allCases(): Generator<Case> {
    const none: Scene = { viewer: 0, owner: 0, id: 0, other: 0 };
    for (const [writes, writer] of Object.entries(writers)) {
      for (const [begins, viewer] of Object.entries(viewers)) {
        for (const order of interleavings(writer(none).length + 1, viewer(none).length + 1)) {
          for (const writing of levels) {
            for (const seeing of levels) {
              const steps = order.map((isWriter) => (isWriter ? 'w' : 'v')).join('');
              const name = `the writer ${writes} (${writing}), the viewer ${begins} (${seeing}), ${steps}`;
              yield { name, writer, viewer, levels: [writing, seeing], order };
            }
          }
        }
      }
    }
  }

  /** Runs a case. Returns whether both transactions committed, and the announcements if they are wrong. */
  async function play({ writer, viewer, levels: [writing, seeing], order }: Case) {
    const scene = await prepare();
    // At the levels where a transaction has only one snapshot, the first statement takes it.
    const look = `SELECT FROM "DttTemplate" WHERE id = ${scene.id}`;
    await actors[0].run(`BEGIN ISOLATION LEVEL ${writing}; ${look}`);
    await actors[1].run(`BEGIN ISOLATION LEVEL ${seeing}; ${look}`);
    const committed = await interleave(actors, [writer(scene), viewer(scene)], order);
    const announced = await announcedByThem();
    // One of them failed, or changed nothing because its record had been deleted.
    if (committed.length < 2 || actors.some((actor) => actor.changed() === 0))
      return { haveCommitted: false };
    // Notifications arrive in the order of commits. If the viewer's own announcement is the last, it is sufficient.
    const ofWriter = announced.filter(({ pid }) => pid === actors[0].pid);
    const last = announced.at(-1)?.pid === actors[1].pid ? announced : ofWriter;
    const isAnnounced = last
      .flatMap(({ text }) => changesOf(text))
      .some((change) =>
        change.kind === 'user' ? change.userId === scene.viewer : change.table !== undefined,
      );
    const texts = announced.map(({ pid, text }) => `${pid === actors[0].pid ? 'w' : 'v'} ${text}`);
    return { haveCommitted: true, wrong: isAnnounced && ofWriter.length > 0 ? undefined : `${texts}` };
  }

  it('gets an announcement after the last commit, at any isolation levels', async () => {
    const cases = [...allCases()].filter((_, index) => index % stride === 0);
    const wrong: string[] = [];
    let committed = 0;
    for (const each of cases) {
      const result = await play(each);
      if (result.haveCommitted) committed++;
      if (result.wrong !== undefined) wrong.push(`${each.name}: ${result.wrong}`);
    }
    expect(wrong).toEqual([]);
    // Most pairs commit. Transactions that PostgreSQL aborts are retried by their clients.
    expect(committed).toBeGreaterThan(cases.length / 2);
  }, 600_000);
});

it('an import that is not committed blocks no other transaction that uses, imports or changes the template', async () => {
  const { rows } = await database.pool.query<{ id: number }>(
    `WITH users AS (INSERT INTO "User" (username) SELECT gen_random_uuid()::text FROM generate_series(1, 3) RETURNING id)
     INSERT INTO "DttTemplate" ("bubbleId", "ownerId", name, "targetDepth", "targetWindow")
     SELECT gen_random_uuid()::text, (SELECT min(id) FROM users), 'n', 1, 1 FROM generate_series(1, 2)
     RETURNING id, "ownerId"`,
  );
  const [one, other] = rows.map(({ id }) => id);
  const owner = `(SELECT "ownerId" FROM "DttTemplate" WHERE id = ${one})`;
  const actors = await Promise.all([openActor(), openActor(), openActor()]);
  const [importer, second, user] = actors;
  const byNext = (next: number, template: number | undefined) =>
    `INSERT INTO ${imports} SELECT ${owner} + ${next}, ${template}`;
  await importer.run(`BEGIN; ${byNext(1, one)}`);
  await second.run(`BEGIN; ${byNext(2, other)}`);
  for (const [actor, text] of [
    [importer, byNext(1, other)],
    [second, byNext(2, one)],
    [user, `SELECT FROM "DttTemplate" WHERE id = ${one} FOR KEY SHARE`],
    [user, `UPDATE "User" SET "activeTemplateId" = ${one} WHERE id = ${owner}`],
    [user, `${into} VALUES (${one}, 0, 'a', 1)`],
    [user, `DELETE FROM ${segment} WHERE "templateId" = ${one}`],
  ] as const) {
    await actor.run(text);
    expect(await actor.waits(), text).toBe(false);
  }
  expect(actors.map((actor) => actor.failure())).toEqual([undefined, undefined, undefined]);
  for (const actor of actors) await actor.end();
});

it.each([
  ['DttTemplate', alice.dttTemplates[0], segment, '"templateId"', ''],
  [
    'DttSession',
    alice.dttSessions[0],
    '"TrainerSegment"',
    '"sessionId"',
    ', "trainerId" = NULL, "goneTrainerId" = 1',
  ],
  ['LockSession', alice.lockSessions[1], '"LockSegment"', '"sessionId"', ', "templateId" = NULL'],
] as const)(
  '%s gets another owner after those who change its segments have committed',
  async (table, id, segments, column, more) => {
    const [writer, viewer] = await Promise.all([openActor(), openActor()]);
    await writer.run(`BEGIN; UPDATE ${segments} SET ${column} = ${column} WHERE ${column} = ${id}`);
    await viewer.run(`BEGIN; UPDATE "${table}" SET "ownerId" = ${bob.userId}${more} WHERE id = ${id}`);
    expect(await viewer.waits()).toBe(true);
    await writer.run('COMMIT');
    await expect.poll(viewer.waits).toBe(false);
    await viewer.run('ROLLBACK');
    for (const actor of [writer, viewer]) await actor.end();
  },
);

describe('a database session', () => {
  let client: pg.Client;
  let heard: string[];
  const { userId: user, dttTemplates } = alice;
  const [template] = dttTemplates;
  const importer = bob.userId;
  beforeEach(async () => {
    client = new pg.Client(database.pool.options);
    client.on('notification', ({ payload = '' }) => payload !== 'switched' && heard.push(payload));
    await client.connect();
    await client.query('LISTEN dovetail');
    heard = [];
  });
  afterEach(() => client.end());

  const created = 1_000_000;

  /** Makes writes of every kind, and checks what they announce. */
  async function write(schema: string) {
    const announced = [
      `${user} DttTemplate`,
      `${importer} DttLibraryEntry`,
      `${user} DttTemplateSegment`,
      `${user} LkbxDevice`,
      `${user} User`,
      `${created} User`,
    ].sort();
    heard = [];
    const paths = await client.query(
      `SELECT current_setting('search_path') AS path;
       UPDATE ${schema}."User" SET league = 2 WHERE id = ${user};
       INSERT INTO ${schema}."User" (id, username) VALUES (${created}, 'created');
       DELETE FROM ${schema}."User" WHERE id = ${created};
       INSERT INTO ${schema}."LkbxDevice" ("bubbleId", "ownerId") VALUES ('of settings', ${user});
       UPDATE ${schema}."LkbxDevice" SET locked = true WHERE "ownerId" = ${user};
       DELETE FROM ${schema}."LkbxDevice" WHERE "ownerId" = ${user};
       INSERT INTO ${schema}."DttTemplateSegment" ("templateId", position, type, duration) VALUES (${template}, 9, 'a', 1);
       UPDATE ${schema}."DttTemplate" SET name = 'm' WHERE id = ${template};
       INSERT INTO ${schema}."DttLibraryEntry" ("userId", "templateId") VALUES (${importer}, ${template});
       DELETE FROM ${schema}."DttLibraryEntry" WHERE "userId" = ${importer} AND "templateId" = ${template};
       DELETE FROM ${schema}."DttTemplateSegment" WHERE "templateId" = ${template};
       SELECT current_setting('search_path') AS path`,
    );
    await expect.poll(() => [...new Set(heard)].sort()).toEqual(announced);
    // Several statements have several results, which the types of pg do not know.
    const results = paths as unknown as pg.QueryResult<{ path: string }>[];
    expect(results.at(-1)?.rows).toEqual(results[0]?.rows);
  }

  it.each([
    ['an empty search_path', `SET search_path = ''`],
    ['session_replication_role = replica', 'SET session_replication_role = replica'],
    [
      'temporary tables that have the names of ours, and of a type',
      'CREATE TEMP TABLE "DttTemplate" (); CREATE TEMP TABLE "DttLibraryEntry" (); CREATE TEMP TABLE text (id int)',
    ],
    [
      'operators, types and functions that shadow those of PostgreSQL',
      `CREATE SCHEMA own; CREATE DOMAIN own.text AS int;
       CREATE FUNCTION own.never(pg_catalog.text, pg_catalog.text) RETURNS boolean LANGUAGE sql AS 'SELECT false';
       CREATE OPERATOR own.= (LEFTARG = pg_catalog.text, RIGHTARG = pg_catalog.text, FUNCTION = own.never);
       CREATE FUNCTION own.pg_notify(pg_catalog.text, pg_catalog.text) RETURNS boolean LANGUAGE sql AS 'SELECT false';
       SET search_path = own, pg_catalog`,
    ],
    [
      'the mode logical on a server that has no logical decoding',
      `SELECT announce_by('logical')`,
      `SELECT announce_by('notify')`,
    ],
    [
      'a schema that was renamed',
      'ALTER SCHEMA public RENAME TO renamed',
      'ALTER SCHEMA renamed RENAME TO public',
      'renamed',
    ],
  ])('announces what it writes with %s', async (_, setting, end = '', schema = 'public') => {
    await client.query(setting);
    try {
      await write(schema);
    } finally {
      await client.query(end);
    }
  });
});

it('no other role may use a trigger function with the rights of the owner on tables of its own', async () => {
  const { rows } = await database.pool.query(
    `SELECT proname AS name FROM pg_proc WHERE prosecdef AND pronamespace = 'public'::regnamespace
       AND has_function_privilege('public', oid, 'EXECUTE')`,
  );
  expect(rows).toEqual([]);
});
