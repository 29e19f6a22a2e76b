/** The change feed: to whom each write is announced, and what happens when the connection is lost. */

import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers/promises';
import pg from 'pg';
import {
  afterAll,
  beforeAll,
  beforeEach,
  describe,
  expect,
  inject,
  it,
  onTestFinished,
  type TestContext,
  vi,
} from 'vitest';
import { createToken, revokeToken } from '../../../src/auth/tokens.ts';
import { findSilentTriggers } from '../../../src/database/announcements.ts';
import type { Change, ChangeFeed } from '../../../src/database/feed/changeFeed.ts';
import { listenToServer } from '../../../src/database/feed/notify.ts';
import { type Account, createAccount, importTemplate } from '../../support/accounts.ts';
import { needsEngine, openTestDatabase, type TestDatabase } from '../../support/gateway.ts';
import { openTcpProxy } from '../../support/tcpProxy.ts';

let database: TestDatabase;
let feed: ChangeFeed;
let alice: Account;
let bob: Account;
let carol: Account;
let names: Map<number, string>;
/** The changes that the feed has announced since the test began. */
let announced: Change[];

beforeAll(async () => {
  database = await openTestDatabase();
  alice = await createAccount(database.client, 'alice');
  bob = await createAccount(database.client, 'bob');
  carol = await createAccount(database.client, 'carol');
  names = new Map([alice, bob, carol].map(({ userId, username }) => [userId, username]));
  feed = await database.openChangeFeed();
  feed.subscribe((change) => announced.push(change));
});
afterAll(async () => {
  await feed?.close();
  await database?.close();
});
beforeEach(() => {
  announced = [];
});

const nobody = 0;

/** The announcements of a write, sorted: `<user> <table>`. A mark that is announced last shows that all have arrived. */
async function announcedBy(write: () => Promise<unknown>): Promise<string[]> {
  // The embedded engine announces a change before the write is acknowledged.
  if (inject('engine').kind === 'embedded') {
    announced = [];
    await write();
    return announced.map(textOf).sort();
  }
  const mark = async () => {
    await database.pool.query(`SELECT pg_notify('dovetail', '${nobody} User')`);
    await expect.poll(() => announced.some(isMark), { interval: 5 }).toBe(true);
    const before = announced.slice(0, announced.findIndex(isMark));
    announced = [];
    return before;
  };
  await mark();
  await write();
  return (await mark()).map(textOf).sort();
}

const isMark = (change: Change) => change.kind === 'user' && change.userId === nobody;
const textOf = (change: Change) =>
  change.kind === 'all' ? 'all' : `${names.get(change.userId) ?? change.userId} ${change.table}`;

const run = (sql: string) => () => database.pool.query(sql);

interface Rows {
  readonly columns: string;
  /** The values of a new row of the account. The index makes several rows differ. */
  readonly values: (account: Account, index: number) => string;
  /** A column that any update may set. */
  readonly touched: string;
}

/** A row of each table that belongs to an account. */
const tables: Record<string, Rows> = {
  DttDevice: {
    columns: '"ownerId", "bubbleId"',
    values: ({ userId }) => `${userId}, gen_random_uuid()`,
    touched: '"macAddress"',
  },
  DttTemplate: {
    columns: '"ownerId", "bubbleId", name, "targetDepth", "targetWindow"',
    values: ({ userId }) => `${userId}, gen_random_uuid(), 'Name', 1, 1`,
    touched: 'name',
  },
  DttTemplateSegment: {
    columns: '"templateId", position, type, duration',
    values: ({ dttTemplates: [id] }, index) => `${id}, ${100 + index}, 'training', 60`,
    touched: 'duration',
  },
  DttLibraryEntry: {
    columns: '"userId", "templateId"',
    values: ({ userId }, index) => `${userId}, ${carol.dttTemplates[index]}`,
    touched: '"importedAt"',
  },
  DttSession: {
    columns: '"ownerId", "bubbleId", "goneTrainerId"',
    values: ({ userId }) => `${userId}, gen_random_uuid(), 1`,
    touched: 'name',
  },
  TrainerSegment: {
    columns: '"sessionId", type, "order"',
    values: ({ dttSessions: [id] }, index) => `${id}, 'endurance', ${100 + index}`,
    touched: 'points',
  },
  LkbxDevice: {
    columns: '"ownerId", "bubbleId"',
    values: ({ userId }) => `${userId}, gen_random_uuid()`,
    touched: 'locked',
  },
  LockTemplate: {
    columns: '"ownerId", name, duration',
    values: ({ userId }) => `${userId}, 'Name', 60`,
    touched: 'duration',
  },
  LockSession: {
    columns: '"ownerId", "bubbleId", "publicId", "lockState", duration',
    values: ({ userId }) => `${userId}, gen_random_uuid(), gen_random_uuid(), 'completed', 60`,
    touched: 'duration',
  },
  LockSegment: {
    columns: '"sessionId", type, "isLocked"',
    values: ({ lockSessions: [id] }) => `${id}, 'start', true`,
    touched: 'type',
  },
  OssmDevice: {
    columns: '"ownerId", "bubbleId", chip',
    values: ({ userId }) => `${userId}, gen_random_uuid(), 'ESP32-S3'`,
    touched: 'chip',
  },
};

/** Inserts three rows of alice's and two of bob's in one statement. */
function insertOf(table: string, { columns, values }: Rows): string {
  const rows = [
    ...[0, 1, 2].map((index) => values(alice, index)),
    ...[0, 1].map((index) => values(bob, index)),
  ];
  return `INSERT INTO "${table}" (${columns}) VALUES ${rows.map((row) => `(${row})`).join(', ')} RETURNING *`;
}

/** The condition that finds the inserted rows again. */
function conditionOf(rows: readonly { id?: number }[]): string {
  const ids = rows.map(({ id }) => id);
  return ids.includes(undefined)
    ? `"templateId" IN (${carol.dttTemplates}) AND "userId" IN (${alice.userId}, ${bob.userId})`
    : `id IN (${ids})`;
}

describe('a statement', () => {
  it.each(Object.entries(tables))('on %s is announced to each owner once', async (table, rows) => {
    const owners = [`alice ${table}`, `bob ${table}`];
    let condition = '';
    const insert = async () => {
      const inserted = await database.pool.query<{ id?: number }>(insertOf(table, rows));
      condition = conditionOf(inserted.rows);
    };
    const { touched } = rows;
    expect(await announcedBy(insert)).toEqual(owners);
    expect(
      await announcedBy(run(`UPDATE "${table}" SET ${touched} = ${touched} WHERE ${condition}`)),
    ).toEqual(owners);
    expect(await announcedBy(run(`DELETE FROM "${table}" WHERE ${condition}`))).toEqual(owners);
  });

  it.each(Object.entries(tables))(
    'on %s that changes no row is not announced',
    async (table, { touched }) => {
      expect(await announcedBy(run(`UPDATE "${table}" SET ${touched} = ${touched} WHERE false`))).toEqual([]);
      expect(await announcedBy(run(`DELETE FROM "${table}" WHERE false`))).toEqual([]);
    },
  );

  it('on User is announced to the user', async () => {
    const name = `user-${Date.now()}`;
    let id = 0;
    const insert = () =>
      database.client.user.create({ data: { username: name } }).then((user) => {
        id = user.id;
      });
    const announced = await announcedBy(insert);
    expect(announced).toEqual([`${id} User`]);
    expect(await announcedBy(run(`UPDATE "User" SET rank = 1 WHERE id = ${id}`))).toEqual([`${id} User`]);
    expect(await announcedBy(run(`DELETE FROM "User" WHERE id = ${id}`))).toEqual([`${id} User`]);
  });

  it('that is rolled back is not announced', async () => {
    const rolledBack = `BEGIN; UPDATE "User" SET rank = 1 WHERE id = ${alice.userId}; ROLLBACK`;
    expect(await announcedBy(run(rolledBack))).toEqual([]);
  });

  it('is announced once to a user with a thousand rows', async () => {
    const insert = `INSERT INTO "LockTemplate" ("ownerId", name, duration)
      SELECT ${bob.userId}, 'bulk', n FROM generate_series(1, 1000) n`;
    expect(await announcedBy(run(insert))).toEqual(['bob LockTemplate']);
    expect(await announcedBy(run(`DELETE FROM "LockTemplate" WHERE name = 'bulk'`))).toEqual([
      'bob LockTemplate',
    ]);
  });
});

describe('a row that moves', () => {
  const owned = Object.entries(tables).filter(([, { columns }]) => columns.includes('"ownerId"'));

  it.each(owned)('to another owner is announced to both: %s', async (table, { columns, values }) => {
    const { rows } = await database.pool.query<{ id: number }>(
      `INSERT INTO "${table}" (${columns}) VALUES (${values(alice, 50)}) RETURNING id`,
    );
    const id = rows[0]?.id;
    expect(
      await announcedBy(run(`UPDATE "${table}" SET "ownerId" = ${bob.userId} WHERE id = ${id}`)),
    ).toEqual([`alice ${table}`, `bob ${table}`]);
    await database.pool.query(`DELETE FROM "${table}" WHERE id = ${id}`);
  });

  it.each([
    ['TrainerSegment', 'sessionId', () => bob.dttSessions[0]],
    ['LockSegment', 'sessionId', () => bob.lockSessions[0]],
    ['DttTemplateSegment', 'templateId', () => bob.dttTemplates[0]],
  ] as const)('to another parent is announced to the owners of both: %s', async (table, parent, place) => {
    const rows = tables[table];
    const inserted = await database.pool.query<{ id: number }>(
      `INSERT INTO "${table}" (${rows?.columns}) VALUES (${rows?.values(alice, 60)}) RETURNING id`,
    );
    const id = inserted.rows[0]?.id;
    expect(await announcedBy(run(`UPDATE "${table}" SET "${parent}" = ${place()} WHERE id = ${id}`))).toEqual(
      [`alice ${table}`, `bob ${table}`],
    );
    await database.pool.query(`DELETE FROM "${table}" WHERE id = ${id}`);
  });
});

describe('a template', () => {
  /** A template of alice's with a segment, which bob has imported. */
  async function sharedTemplate() {
    const template = await database.client.dttTemplate.create({
      data: {
        ownerId: alice.userId,
        bubbleId: `shared-${Date.now()}-${Math.random()}`,
        name: 'Shared',
        targetDepth: 1,
        targetWindow: 1,
        segments: { create: { position: 0, type: 'warmup', duration: 60 } },
      },
    });
    await importTemplate(database.client, bob, template.id);
    return template.id;
  }

  it('is announced to its owner and its importer when it or one of its segments changes', async () => {
    const id = await sharedTemplate();
    expect(await announcedBy(run(`UPDATE "DttTemplate" SET name = 'New' WHERE id = ${id}`))).toEqual([
      'alice DttTemplate',
      'bob DttTemplate',
    ]);
    expect(
      await announcedBy(run(`UPDATE "DttTemplateSegment" SET duration = 1 WHERE "templateId" = ${id}`)),
    ).toEqual(['alice DttTemplateSegment', 'bob DttTemplateSegment']);
    expect(await announcedBy(run(`DELETE FROM "DttTemplateSegment" WHERE "templateId" = ${id}`))).toEqual([
      'alice DttTemplateSegment',
      'bob DttTemplateSegment',
    ]);
  });

  it('is announced only to the importer when it is imported or removed from the library', async () => {
    const [id] = carol.dttTemplates;
    const importIt = () => importTemplate(database.client, alice, id);
    expect(await announcedBy(importIt)).toEqual(['alice DttLibraryEntry']);
    const giveUp = `DELETE FROM "DttLibraryEntry" WHERE "userId" = ${alice.userId} AND "templateId" = ${id}`;
    expect(await announcedBy(run(giveUp))).toEqual(['alice DttLibraryEntry']);
  });

  it('is announced to its owner when its library entry is written separately, as by replication', async () => {
    const client = await database.pool.connect();
    const asReplica = (sql: string) => () =>
      client.query(`BEGIN; SET LOCAL session_replication_role = replica; ${sql}; COMMIT`);
    const { columns, values } = tables.DttTemplate ?? { columns: '', values: () => '' };
    const template = `INSERT INTO "DttTemplate" (id, ${columns}) VALUES (99999, ${values(alice, 0)})`;
    expect(await announcedBy(asReplica(template))).toEqual(['alice DttTemplate']);
    const entry = `INSERT INTO "DttLibraryEntry" VALUES (${alice.userId}, 99999, NULL)`;
    expect(await announcedBy(asReplica(entry))).toEqual(['alice DttLibraryEntry']);
    const moved = `UPDATE "DttLibraryEntry" SET "userId" = ${bob.userId} WHERE "templateId" = 99999`;
    expect(await announcedBy(asReplica(moved))).toEqual(['alice DttLibraryEntry', 'bob DttLibraryEntry']);
    const back = moved.replace(String(bob.userId), String(alice.userId));
    await asReplica(back)();
    const gone = 'DELETE FROM "DttLibraryEntry" WHERE "templateId" = 99999';
    expect(await announcedBy(asReplica(gone))).toEqual(['alice DttLibraryEntry']);
    await client.query('DELETE FROM "DttTemplate" WHERE id = 99999');
    client.release();
  });

  it('is announced on its deletion to every user who had it, also to those who had activated it', async () => {
    const id = await sharedTemplate();
    await database.client.user.update({ where: { id: bob.userId }, data: { activeTemplateId: id } });
    const announced = await announcedBy(run(`DELETE FROM "DttTemplate" WHERE id = ${id}`));
    expect(announced).toEqual(
      expect.arrayContaining(['alice DttTemplate', 'bob DttLibraryEntry', 'bob User']),
    );
    expect(announced.filter((text) => text.startsWith('carol'))).toEqual([]);
  });
});

describe('a deletion', () => {
  it('of a user is announced to the user, also for their tokens, and to importers of their templates', async () => {
    const dave = await createAccount(database.client, 'dave');
    await importTemplate(database.client, alice, dave.dttTemplates[0]);
    const announced = await announcedBy(run(`DELETE FROM "User" WHERE id = ${dave.userId}`));
    expect(announced).toEqual(
      expect.arrayContaining([`${dave.userId} User`, `${dave.userId} ApiToken`, 'alice DttLibraryEntry']),
    );
    expect(announced.filter((text) => /bob|carol/.test(text))).toEqual([]);
  });
});

describe('a token', () => {
  it('is announced when it is revoked or deleted, and not when it is created or used', async () => {
    let id = 0;
    const create = async () => {
      ({ id } = await createToken(database.pool, 'bob', 'announced'));
    };
    // The creation locks the user's row, which changes nothing.
    expect(await announcedBy(create)).toEqual([]);
    const use = () =>
      database.client.apiToken.updateMany({ where: { id }, data: { lastUsedAt: new Date() } });
    expect(await announcedBy(use)).toEqual([]);
    expect(await announcedBy(() => revokeToken(database.client, id))).toEqual(['bob ApiToken']);
    expect(await announcedBy(() => database.client.apiToken.delete({ where: { id } }))).toEqual([
      'bob ApiToken',
    ]);
  });

  it('that gets another user is announced to the previous user', async () => {
    const { id } = await createToken(database.pool, 'alice', 'moving');
    expect(await announcedBy(run(`UPDATE "ApiToken" SET "userId" = ${bob.userId} WHERE id = ${id}`))).toEqual(
      ['alice ApiToken'],
    );
    await database.client.apiToken.delete({ where: { id } });
  });
});

/** Tables that no response shows. */
const unseen = ['Mirror', 'MirroredAccount', 'RateLimit', '_prisma_migrations'];

describe('every table', () => {
  it('has triggers for all statements that change rows', async () => {
    const { rows } = await database.pool.query<{ table: string; triggers: string[] }>(
      `
      SELECT relname AS table, array_agg(tgname::text ORDER BY tgname) FILTER (WHERE tgname LIKE 'announce%') AS triggers
      FROM pg_class LEFT JOIN pg_trigger ON tgrelid = pg_class.oid
      WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname <> ALL ($1)
      GROUP BY relname`,
      [unseen],
    );
    const all = ['announce_delete', 'announce_insert', 'announce_truncate', 'announce_update'];
    // A new token has not been used for any response.
    const expected = (table: string) =>
      table === 'ApiToken' ? all.filter((name) => name !== 'announce_insert') : all;
    expect(rows.map(({ table }) => table).sort()).toEqual(
      [...Object.keys(tables), 'ApiToken', 'User'].sort(),
    );
    for (const { table, triggers } of rows) expect(triggers, table).toEqual(expected(table));
  });

  it.each([
    ['disabled', 'DISABLE TRIGGER USER'],
    // The state of a new trigger, which sessions that replicate skip.
    ['sometimes', 'ENABLE TRIGGER USER'],
    ['missing', undefined],
  ])('is reported with each of its triggers that is %s (%s)', async (state, change) => {
    const client = await database.pool.connect();
    try {
      expect(await findSilentTriggers(client)).toEqual([]);
      const { rows } = await client.query<{ table: string; trigger: string }>(
        `SELECT relname AS table, tgname AS trigger FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
         WHERE tgname LIKE 'announce\\_%' OR tgname = 'await_writers'`,
      );
      expect(rows.length).toBeGreaterThan(50);
      await client.query('BEGIN');
      for (const { table, trigger } of rows)
        await client.query(
          change ? `ALTER TABLE "${table}" ${change}` : `DROP TRIGGER ${trigger} ON "${table}"`,
        );
      const found = (await findSilentTriggers(client)).filter(({ does }) => does === 'announce');
      await client.query('ROLLBACK');
      const byName = (one: { table: string; trigger: string }) => `${one.table} ${one.trigger}`;
      expect(new Set(found.map(byName))).toEqual(new Set(rows.map(byName)));
      expect(found).toHaveLength(rows.length);
      expect(new Set(found.map((each) => each.state))).toEqual(new Set([state]));
    } finally {
      client.release();
    }
  });
});

describe('a change', () => {
  const change = (text: string) => [`alice ${text}`];

  it('is announced whichever client makes it', async () => {
    const [id] = alice.dttDevices;
    const prisma = () => database.client.dttDevice.update({ where: { id }, data: { apiHits: 1 } });
    expect(await announcedBy(prisma)).toEqual(change('DttDevice'));

    const raw = () => database.client.$executeRaw`UPDATE "DttDevice" SET "apiHits" = 2 WHERE id = ${id}`;
    expect(await announcedBy(raw)).toEqual(change('DttDevice'));

    const transaction = () =>
      database.client.$transaction(async (client) => {
        await client.dttDevice.update({ where: { id }, data: { apiHits: 3 } });
        await client.dttDevice.update({ where: { id }, data: { apiHits: 4 } });
      });
    // PostgreSQL merges equal notifications of a transaction.
    expect(await announcedBy(transaction)).toEqual(change('DttDevice'));

    const anonymous = new pg.Client(database.pool.options);
    await anonymous.connect();
    const simple = () => anonymous.query(`UPDATE "DttDevice" SET "apiHits" = 5 WHERE id = ${id}`);
    expect(await announcedBy(simple)).toEqual(change('DttDevice'));
    const prepared = () =>
      anonymous.query({
        name: 'hits',
        text: 'UPDATE "DttDevice" SET "apiHits" = $1 WHERE id = $2',
        values: [6, id],
      });
    expect(await announcedBy(prepared)).toEqual(change('DttDevice'));
    await anonymous.end();
  });

  it('is sent to each subscriber until it unsubscribes', async () => {
    const other = await database.openChangeFeed();
    const heard: string[] = [];
    const unsubscribe = other.subscribe((heardChange) => heard.push(textOf(heardChange)));
    const touch = run(`UPDATE "OssmDevice" SET chip = chip WHERE id = ${alice.ossmDevices[0]}`);
    await announcedBy(touch);
    await expect.poll(() => heard).toContain('alice OssmDevice');
    unsubscribe();
    const before = heard.length;
    await announcedBy(touch);
    expect(heard).toHaveLength(before);
    await other.close();
  });
});

describe('a heartbeat', () => {
  it('of another gateway is not announced as a change', async () => {
    expect(await announcedBy(run(`NOTIFY dovetail, 'heartbeat of another'`))).toEqual([]);
    // A payload that is not understood could stand for any change.
    const unknown = () => database.pool.query(`NOTIFY dovetail, 'of a later version'`);
    expect(await announcedBy(unknown)).toEqual(['all']);
  });

  it('is sent regularly over a connection of its own, and is not announced as a change', async ({ skip }) => {
    skip(inject('engine').kind !== 'postgres', 'all clients of the embedded engine share its session');
    const beats: { sender: number; payload: string }[] = [];
    const other = new pg.Client(database.pool.options);
    await other.connect();
    other.on('notification', ({ processId, payload = '' }) => beats.push({ sender: processId, payload }));
    await other.query('LISTEN dovetail');
    announced = [];
    await expect.poll(() => beats.length).toBeGreaterThan(1);
    expect(announced).toEqual([]);
    expect(beats.every(({ payload }) => payload.startsWith('heartbeat '))).toBe(true);
    const { rows } = await other.query<{ pid: number; query: string }>(
      `SELECT pid, query FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`,
    );
    const [listener] = rows.filter(({ query }) => query === 'LISTEN dovetail');
    // The connection that listens is not the one that sends heartbeats.
    expect(listener).toBeDefined();
    expect(beats.map(({ sender }) => sender)).not.toContain(listener?.pid);
    await other.end();
  });
});

describe('the embedded engine', () => {
  needsEngine('embedded', 'a server gives each client a session of its own');

  it('has a change announced before the write is acknowledged', async () => {
    const [id] = alice.dttDevices;
    for (let hits = 0; hits < 20; hits++) {
      announced = [];
      await database.pool.query(`UPDATE "DttDevice" SET "apiHits" = ${hits} WHERE id = ${id}`);
      expect(announced.map(textOf)).toEqual(['alice DttDevice']);
    }
  });

  it('is listened to again when the LISTEN of its session has ended', async () => {
    await database.pool.query('UNLISTEN *');
    const change = run(`UPDATE "OssmDevice" SET chip = chip WHERE id = ${bob.ossmDevices[0]}`);
    await expect
      .poll(
        async () => {
          announced = [];
          await change();
          return announced.map(textOf);
        },
        { interval: 100, timeout: 15_000 },
      )
      .toContain('bob OssmDevice');
    // It receives changes before it has received its own heartbeat.
    await expect.poll(() => feed.listening, { timeout: 15_000 }).toBe(true);
  });
});

/** Records how long feeds wait, in milliseconds, and replaces their waiting by this function. */
function watchWaits(wait: typeof timers.setTimeout | (() => Promise<void>)): number[] {
  const waits: number[] = [];
  const watched = vi.spyOn(timers, 'setTimeout').mockImplementation(async (delay = 0, value, options) => {
    waits.push(delay);
    await new Promise(setImmediate);
    await wait(delay, value, options);
    return value;
  });
  syncBuiltinESMExports();
  onTestFinished(() => {
    watched.mockRestore();
    syncBuiltinESMExports();
  });
  return waits;
}

describe('the connection of a feed', () => {
  needsEngine('postgres', 'the embedded engine has no connection to lose');

  let scenes = 0;

  /** A feed over a proxy of its own, and the application name by which its connections are found. */
  async function openScene({ expect, onTestFinished: finish }: TestContext) {
    const name = `lost ${++scenes}`;
    const line = await openTcpProxy(database);
    finish(() => line.close());
    const lost = await listenToServer({ connectionString: line.url, application_name: name });
    finish(() => lost.close());
    const events: string[] = [];
    /** The changes for all users. Those for single users may come from concurrent tests as well. */
    const aboutAll = () => events.filter((event) => event.startsWith('all'));
    lost.subscribe((each) => events.push(`${textOf(each)}${lost.listening ? '' : ', not listening'}`));
    const isBack = () => expect.poll(() => lost.listening, { timeout: 15_000 }).toBe(true);
    const isGone = () => expect.poll(() => lost.listening, { interval: 5 }).toBe(false);
    return { name, line, lost, events, aboutAll, isBack, isGone };
  }

  const change = () =>
    database.pool.query(`UPDATE "OssmDevice" SET chip = chip WHERE id = ${bob.ossmDevices[0]}`);

  /** How many connections a feed has to a database. */
  const connectionsOf = async (name: string, { pool } = database) => {
    const { rowCount } = await pool.query(
      'SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1',
      [name],
    );
    return rowCount;
  };

  it.concurrent('is made again when it is lost, and a change for all is announced at the loss and at the return', async (test) => {
    const { expect } = test;
    const { name, line, lost, events, aboutAll, isBack, isGone } = await openScene(test);
    expect(lost.listening).toBe(true);
    expect(lost.reconnects).toBe(0);
    await line.terminate();
    await isGone();
    await isBack();
    expect(aboutAll()).toEqual(['all, not listening', 'all']);
    expect(lost.reconnects).toBe(1);
    await change();
    await expect.poll(() => events).toContain('bob OssmDevice');
    expect(await connectionsOf(name)).toBe(2);
    await lost.close();
    expect(lost.listening).toBe(false);
    await expect.poll(() => connectionsOf(name)).toBe(0);
  });

  it.concurrent('is found to be lost when the network drops it silently', async (test) => {
    const { expect } = test;
    const { line, events, aboutAll, isBack, isGone } = await openScene(test);
    line.hold();
    await change();
    await isGone();
    line.release();
    await isBack();
    expect(aboutAll()[0]).toBe('all, not listening');
    expect(aboutAll().at(-1)).toBe('all');
    await change();
    await expect.poll(() => events).toContain('bob OssmDevice');
  });

  it.concurrent('is found to be lost when only announcements do not arrive any more', async (test) => {
    const { expect } = test;
    const { line, events, aboutAll, isBack, isGone } = await openScene(test);
    line.deafen();
    await change();
    await isGone();
    expect(aboutAll()).toEqual(['all, not listening']);
    line.release();
    await isBack();
    await change();
    await expect.poll(() => events).toContain('bob OssmDevice');
  });

  it.concurrent('lets catchUp wait for all changes that could be read, or report that some may be missing', async (test) => {
    const { expect } = test;
    const { line, lost, events, isGone } = await openScene(test);
    for (let time = 0; time < 5; time++) {
      const before = events.length;
      await change();
      expect(await lost.catchUp?.()).toBe(true);
      expect(events.length).toBeGreaterThan(before);
    }
    // Concurrent calls share one result.
    const results = await Promise.all(Array.from({ length: 20 }, () => lost.catchUp?.()));
    expect(new Set(results)).toEqual(new Set([true]));
    line.deafen();
    expect(await lost.catchUp?.()).toBe(false);
    line.hold();
    await isGone();
    expect(await lost.catchUp?.()).toBe(false);
    line.release();
  });

  it.concurrent('is replaced when new connections lead to another server, even if the previous one still runs', async (test) => {
    const { expect } = test;
    const { line, lost } = await openScene(test);
    const other = await openTestDatabase();
    const { userId } = await createAccount(other.client, 'dora');
    const name = 'following';
    const following = await listenToServer(
      { connectionString: line.url, application_name: name },
      undefined,
      { longestUse: 1_000 },
    );
    test.onTestFinished(() => following.close());
    const heard: string[] = [];
    following.subscribe((each) => heard.push(textOf(each)));
    line.redirect(other);
    await expect.poll(() => following.reconnects, { timeout: 20_000 }).toBe(1);
    await other.pool.query(`UPDATE "User" SET rank = 1 WHERE id = ${userId}`);
    await expect.poll(() => heard).toContain(`${names.get(userId) ?? userId} User`);
    expect(following.listening).toBe(true);
    await expect.poll(() => connectionsOf(name)).toBe(0);
    expect(await connectionsOf(name, other)).toBe(2);
    // The connection of the other feed was not lost.
    expect(lost.listening).toBe(true);
    await following.close();
    await other.close();
  });

  it.concurrent('counts as lost when a new connection cannot announce, even while catchUp is called', async (test) => {
    const { expect } = test;
    const { line } = await openScene(test);
    const announcing = await openTcpProxy(database);
    const following = await listenToServer(
      { connectionString: line.url },
      { connectionString: announcing.url },
      { longestUse: 500 },
    );
    test.onTestFinished(async () => {
      await following.close();
      await announcing.close();
    });
    expect(following.listening).toBe(true);
    // From here on new connections fail, and existing ones stay open.
    const nowhere = new URL(announcing.url);
    nowhere.pathname = `/${'x'.repeat(nowhere.pathname.length - 1)}`;
    announcing.redirect({ pool: new pg.Pool({ connectionString: nowhere.href }) });
    const end = Date.now() + 10_000;
    while (following.listening && Date.now() < end) {
      await following.catchUp?.();
      await timers.setTimeout(10);
    }
    expect(following.listening).toBe(false);
  });

  it.concurrent('is given up while it is made when the server accepts it and does not respond', async (test) => {
    const { expect } = test;
    const { line, isBack, isGone } = await openScene(test);
    line.hold();
    await isGone();
    // The proxy accepts new connections, and does not respond.
    await expect.poll(() => line.held(), { timeout: 15_000 }).toBeGreaterThan(2);
    line.release();
    await isBack();
  });

  it.concurrent('can be closed while it is lost', async (test) => {
    const { expect } = test;
    const { line, lost, isGone } = await openScene(test);
    line.hold();
    await isGone();
    await expect.poll(() => line.held()).toBeGreaterThan(1);
    const began = Date.now();
    await lost.close();
    expect(Date.now() - began).toBeLessThan(1_000);
  });

  it('is not lost to an idle_session_timeout of the role', async (test) => {
    if (inject('engine').kind === 'embedded') test.skip('the embedded engine ends no session');
    const url = new URL(database.pool.options.connectionString ?? '');
    url.searchParams.set('options', '-c idle_session_timeout=300ms');
    const idle = await listenToServer({ connectionString: url.href });
    const changes: Change[] = [];
    idle.subscribe((change) => changes.push(change));
    await timers.setTimeout(1_500);
    await idle.close();
    // Closing the feed is the only announcement.
    expect(changes).toEqual([{ kind: 'all' }]);
  });

  it('announces its loss once, however long the reconnection takes', async (test) => {
    const { expect } = test;
    const { line, aboutAll, isBack, isGone } = await openScene(test);
    const waits = watchWaits(timers.setTimeout);
    /** The waits between attempts, without those between heartbeats. */
    const pauses = () => waits.filter((wait) => wait !== 2_000);
    await line.refuse();
    await isGone();
    await expect.poll(pauses, { interval: 5 }).toContain(400);
    expect(aboutAll()).toEqual(['all, not listening']);
    await line.accept();
    await isBack();
    expect(aboutAll()).toEqual(['all, not listening', 'all']);
    // After the next loss, the waits begin again with the shortest.
    waits.splice(0);
    await line.terminate();
    await expect.poll(() => pauses()[0]).toBe(50);
  });
});

it('a server that cannot be listened to does not prevent the start, and the reason and its end are reported once', async ({
  skip,
}) => {
  skip(inject('engine').kind !== 'postgres', 'the embedded engine has no connection to lose');
  const reports: (string | undefined)[] = [];
  const application_name = `reporting ${Date.now()}`;
  const line = await openTcpProxy(database);
  await line.refuse();
  const direct = { connectionString: line.url, application_name };
  const reporting = await listenToServer(direct, direct, { report: (problem) => reports.push(problem) });
  onTestFinished(async () => {
    await reporting.close();
    await line.close();
  });
  const refused = expect.stringMatching(/^connect ECONNREFUSED /);
  expect(reporting.listening).toBe(false);
  expect(reports).toEqual([refused]);
  await line.accept();
  await expect.poll(() => reports).toEqual([refused, undefined]);
  await database.pool.query(
    'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1',
    [application_name],
  );
  const ended = 'terminating connection due to administrator command';
  await expect.poll(() => reports).toEqual([refused, undefined, ended, undefined]);
});

it('the feed waits longer after each failed attempt, up to five seconds', async () => {
  const waits = watchWaits(async () => {});
  // No server listens there.
  const following = await listenToServer({ host: '127.0.0.1', port: 1 });
  await expect.poll(() => waits.length, { interval: 5 }).toBeGreaterThan(10);
  await following.close();
  // The first wait is for the first attempt.
  expect(waits.slice(1, 11)).toEqual([50, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000, 5_000]);
});

// These tests are the last, since they remove the accounts.
describe('a truncation', () => {
  it.each([...Object.keys(tables), 'ApiToken', 'User'])('of %s is announced to all users', async (table) => {
    const kinds = new Set<string>();
    const emptied = new Set<string | undefined>();
    const unsubscribe = feed.subscribe((change) => {
      kinds.add(change.kind);
      emptied.add(change.table);
    });
    await database.pool.query(`TRUNCATE "${table}" CASCADE`);
    await expect.poll(() => emptied.has(table), { interval: 5 }).toBe(true);
    // The tokens are removed with the users.
    if (table === 'User') await expect.poll(() => emptied.has('ApiToken')).toBe(true);
    expect([...kinds]).toEqual(['all']);
    unsubscribe();
  });
});
