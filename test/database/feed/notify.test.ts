/** The change feed: to whom each write is announced, and what happens when the connection is lost. */

import { getEventListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeEach, describe, expect, inject, it, type TestContext, vi } from 'vitest';
import { createToken, rotateToken } from '../../../src/auth/tokens.ts';
import { type Change, keepListening } from '../../../src/database/feed/changeFeed.ts';
import { listenToServer } from '../../../src/database/feed/notify.ts';
import { announcedTables } from '../../../src/database/models.ts';
import { type Account, createAccount, importTemplate } from '../../support/accounts.ts';
import { needsEngine, openTestDatabase } from '../../support/gateway.ts';
import { databaseWith } from '../../support/setUp.ts';
import { openTcpProxy, type TcpProxy } from '../../support/tcpProxy.ts';

const { database, alice, bob, carol } = await databaseWith('alice', 'bob', 'carol');
const names = new Map([alice, bob, carol].map(({ userId, username }) => [userId, username]));
/** The changes that the feed has announced since the test began. */
let announced: Change[] = [];
const report = vi.fn();
const feed = await database.openChangeFeed({ report });
feed.subscribe((change) => announced.push(change));
afterAll(feed.close);
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

/** The tables with rows of accounts. */
const tables = announcedTables.filter((table) => !['User', 'ApiToken'].includes(table));

/** The column by which a row belongs to an account, and its value. */
function placeOf(table: string, { userId, dttSessions, dttTemplates, lockSessions }: Account) {
  if (table === 'TrainerSegment') return ['"sessionId"', dttSessions[0]] as const;
  if (table === 'LockSegment') return ['"sessionId"', lockSessions[0]] as const;
  if (table === 'DttTemplateSegment') return ['"templateId"', dttTemplates[0]] as const;
  return [table === 'DttLibraryEntry' ? '"userId"' : '"ownerId"', userId] as const;
}

/** Selects copies of a row of the account that differ in all that is unique. Their ids begin after the first one. */
function copiesOf(table: string, account: Account, first: number, count: number): string {
  const [column, place] = placeOf(table, account);
  const template = table === 'DttTemplateSegment' ? 't."templateId"' : 'NULL';
  const changed = {
    id: `${first} + n`,
    ...{
      bubbleId: 'gen_random_uuid()',
      publicId: 'gen_random_uuid()',
      position: '100 + n',
      order: '100 + n',
    },
    // A row that moves refers to nothing of its owner.
    isActive: 'false',
    trainerId: 'NULL',
    goneTrainerId: '1',
    templateId: table === 'DttLibraryEntry' ? `(ARRAY[${carol.dttTemplates}])[n]` : template,
  };
  const pairs = Object.entries(changed).map(([name, value]) => `'${name}', ${value}`);
  return `SELECT (jsonb_populate_record(t, jsonb_build_object(${pairs}))).* FROM generate_series(1, ${count}) n, "${table}" t
    WHERE ctid = (SELECT min(ctid) FROM "${table}" WHERE ${column} = ${place})`;
}

/** The condition that finds the copies. */
const areCopies = (table: string) =>
  table === 'DttLibraryEntry'
    ? `"templateId" IN (${carol.dttTemplates}) AND "userId" IN (${alice.userId}, ${bob.userId})`
    : 'id > 1000000';

describe('a statement', () => {
  it.each(tables)(
    'on %s is announced to each owner once, also to both of a row that moves',
    async (table) => {
      const owners = [`alice ${table}`, `bob ${table}`];
      const [column, place] = placeOf(table, bob);
      const copies = [copiesOf(table, alice, 1_000_000, 3), copiesOf(table, bob, 2_000_000, 2)];
      const update = run(`UPDATE "${table}" SET ${column} = ${column} WHERE ${areCopies(table)}`);
      const remove = run(`DELETE FROM "${table}" WHERE ${areCopies(table)}`);
      expect(await announcedBy(run(`INSERT INTO "${table}" ${copies.join(' UNION ALL ')}`))).toEqual(owners);
      // The last one of alice's, which bob has no equal of.
      const move = run(`UPDATE "${table}" SET ${column} = ${place} WHERE id = 1000003`);
      if (table !== 'DttLibraryEntry') expect(await announcedBy(move)).toEqual(owners);
      expect(await announcedBy(update)).toEqual(owners);
      expect(await announcedBy(remove)).toEqual(owners);
      // Now they change no row.
      expect(await announcedBy(update)).toEqual([]);
      expect(await announcedBy(remove)).toEqual([]);
    },
  );

  it('on User is announced to the user', async () => {
    const insert = `INSERT INTO "User" (id, username) VALUES (99999, 'somebody')`;
    for (const write of [
      insert,
      `UPDATE "User" SET rank = 1 WHERE id = 99999`,
      'DELETE FROM "User" WHERE id = 99999',
    ])
      expect(await announcedBy(run(write))).toEqual(['99999 User']);
  });

  it('that is rolled back is not announced', async () => {
    const rolledBack = `BEGIN; UPDATE "User" SET rank = 1 WHERE id = ${alice.userId}; ROLLBACK`;
    expect(await announcedBy(run(rolledBack))).toEqual([]);
  });
});

describe('a template', () => {
  it('is announced to its owner and its importer when it or one of its segments changes', async () => {
    const [id = 0] = alice.dttTemplates;
    await importTemplate(database.client, bob, id);
    for (const [table, write] of [
      ['DttTemplate', `UPDATE "DttTemplate" SET name = 'New' WHERE id = ${id}`],
      ['DttTemplateSegment', `UPDATE "DttTemplateSegment" SET duration = 1 WHERE "templateId" = ${id}`],
      ['DttTemplateSegment', `DELETE FROM "DttTemplateSegment" WHERE "templateId" = ${id}`],
    ] as const)
      expect(await announcedBy(run(write))).toEqual([`alice ${table}`, `bob ${table}`]);
  });

  it('is announced on its deletion to every user who had it, also to those who had activated it', async () => {
    const [, id = 0] = alice.dttTemplates;
    await importTemplate(database.client, bob, id);
    await database.client.user.update({ where: { id: bob.userId }, data: { activeTemplateId: id } });
    expect(await announcedBy(run(`DELETE FROM "DttTemplate" WHERE id = ${id}`))).toEqual([
      'alice DttSession',
      'alice DttTemplate',
      'bob DttLibraryEntry',
      'bob User',
    ]);
  });
});

it('a token is announced when it is created or deleted, or its validity changes, and not when it is used or renamed', async () => {
  const created: { id?: number } = {};
  const create = async () => Object.assign(created, await createToken(database.pool, 'bob', 'announced'));
  // The creation also locks the user's row, which changes nothing.
  expect(await announcedBy(create)).toEqual(['bob ApiToken']);
  const { id = 0 } = created;
  expect(await announcedBy(() => rotateToken(database.pool, id, 0))).toEqual(['bob ApiToken']);
  const set = (column: string, value: string) =>
    run(`UPDATE "ApiToken" SET "${column}" = ${value} WHERE id = ${id}`);
  for (const [column, value] of [
    ['revokedAt', 'now()'],
    ['expiresAt', 'now()'],
    ['scope', `'read'`],
    ['digest', `sha256('other')`],
    ['previousDigest', `sha256('another')`],
    ['previousValidUntil', 'now()'],
    ['userId', '"userId"'],
  ] as const)
    expect(await announcedBy(set(column, value)), column).toEqual(['bob ApiToken']);
  for (const [column, value] of [
    ['lastUsedAt', 'now()'],
    ['name', `'x'`],
  ] as const)
    expect(await announcedBy(set(column, value)), column).toEqual([]);
  expect(await announcedBy(run(`DELETE FROM "ApiToken" WHERE id = ${id}`))).toEqual(['bob ApiToken']);
});

/** Tables that no response shows. */
const unseen = ['Mirror', 'MirroredAccount', 'RateLimit', '_prisma_migrations'];

it('every table that a response shows has triggers, each of which is expected', async () => {
  const { rows } = await database.pool.query<{ table: string }>(
    `SELECT relname AS table FROM pg_class
     WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname <> ALL ($1) ORDER BY 1`,
    [unseen],
  );
  expect(rows.map(({ table }) => table).sort()).toEqual(announcedTables.toSorted());
});

it('a change is sent to each subscriber until it unsubscribes', async () => {
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

it('a heartbeat of another gateway is not announced as a change', async () => {
  expect(await announcedBy(run(`NOTIFY dovetail, 'heartbeat of another'`))).toEqual([]);
  // A payload that is not understood could stand for any change.
  const unknown = () => database.pool.query(`NOTIFY dovetail, 'of a later version'`);
  expect(await announcedBy(unknown)).toEqual(['all']);
});

describe('the embedded engine', () => {
  needsEngine('embedded', 'a server gives each client a session of its own');

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
    await expect.poll(() => feed.listening).toBe(true);
    expect(report.mock.calls).toEqual([['they do not arrive'], [undefined]]);
  });
});

describe('the connection of a feed', () => {
  needsEngine('postgres', 'the embedded engine has no connection to lose');

  /** A feed over a proxy of its own, and the application name by which its connections are found. */
  async function openScene({ expect, onTestFinished: finish, task }: TestContext) {
    const name = task.name.slice(0, 60);
    const line = await openTcpProxy(database);
    finish(() => line.close());
    const lost = await listenToServer({ connectionString: line.url, application_name: name });
    finish(() => lost.close());
    const events: string[] = [];
    /** The changes for all users. Those for single users may come from concurrent tests as well. */
    const aboutAll = () => events.filter((event) => event.startsWith('all'));
    lost.subscribe((each) => events.push(`${textOf(each)}${lost.listening ? '' : ', not listening'}`));
    const isBack = () => expect.poll(() => lost.listening).toBe(true);
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

  const losses: [string, (line: TcpProxy) => Promise<void> | void][] = [
    ['the server ends it', (line) => line.terminate()],
    ['the network drops it silently', (line) => line.hold()],
    ['only announcements do not arrive any more', (line) => line.deafen()],
  ];

  it.concurrent.for(losses)(
    'is made again when %s, and a change for all is announced at the loss and at the return',
    async ([, lose], test) => {
      const { expect } = test;
      const { name, line, lost, events, aboutAll, isBack, isGone } = await openScene(test);
      expect([lost.listening, lost.reconnects]).toEqual([true, 0]);
      await lose(line);
      const missed = lost.listening && change();
      await isGone();
      expect(await lost.catchUp?.()).toBe(false);
      await missed;
      line.release();
      await isBack();
      expect(aboutAll()).toEqual(['all, not listening', 'all']);
      expect(lost.reconnects).toBe(1);
      await change();
      await expect.poll(() => events).toContain('bob OssmDevice');
      expect(await connectionsOf(name)).toBe(2);
      await lost.close();
      expect(lost.listening).toBe(false);
      await expect.poll(() => connectionsOf(name)).toBe(0);
    },
  );

  it.concurrent('lets catchUp wait for all changes that could be read, or report that some may be missing', async (test) => {
    const { expect } = test;
    const { line, lost, events } = await openScene(test);
    for (let time = 0; time < 5; time++) {
      const before = events.length;
      await change();
      expect(await lost.catchUp?.()).toBe(true);
      expect(events.length).toBeGreaterThan(before);
    }
    line.deafen();
    expect(await lost.catchUp?.()).toBe(false);
  });

  it.concurrent('is replaced when new connections lead to another server, even if the previous one still runs', async (test) => {
    const { expect } = test;
    const { line } = await openScene(test);
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
    await expect.poll(() => following.reconnects).toBe(1);
    await other.pool.query(`UPDATE "User" SET rank = 1 WHERE id = ${userId}`);
    await expect.poll(() => heard).toContain(`${names.get(userId) ?? userId} User`);
    await expect.poll(() => connectionsOf(name)).toBe(0);
    expect(await connectionsOf(name, other)).toBe(2);
    await following.close();
    await other.close();
  });

  it.concurrent('can be closed while it is made, and the server accepts it and does not respond', async (test) => {
    const { expect } = test;
    const { line, lost, isGone } = await openScene(test);
    line.hold();
    await isGone();
    // New connections, after those that were lost.
    await expect.poll(() => line.held()).toBeGreaterThan(2);
    const began = Date.now();
    await lost.close();
    expect(Date.now() - began).toBeLessThan(4_000);
  });

  it.concurrent('is not lost to an idle_session_timeout of the role', async ({ expect }) => {
    const url = new URL(database.pool.options.connectionString ?? '');
    url.searchParams.set('options', '-c idle_session_timeout=700ms');
    const idle = await listenToServer({ connectionString: url.href });
    const changes: Change[] = [];
    // Other tests write meanwhile.
    idle.subscribe((change) => change.kind === 'all' && changes.push(change));
    await sleep(1_500);
    await idle.close();
    // Closing the feed is the only announcement.
    expect(changes).toEqual([{ kind: 'all' }]);
  });

  it.concurrent('that cannot be made does not prevent the start, and each reason and its end are reported once', async (test) => {
    const { expect } = test;
    const reports: (string | undefined)[] = [];
    const line = await openTcpProxy(database);
    await line.refuse();
    const direct = { connectionString: line.url };
    const reporting = await listenToServer(direct, direct, { report: (problem) => reports.push(problem) });
    test.onTestFinished(async () => {
      await reporting.close();
      await line.close();
    });
    const refused = expect.stringMatching(/^connect ECONNREFUSED /);
    expect(reporting.listening).toBe(false);
    // Several attempts fail.
    await sleep(500);
    expect(reports).toEqual([refused]);
    await line.accept();
    await expect.poll(() => reports).toEqual([refused, undefined]);
    await line.terminate();
    const ended = 'terminating connection due to administrator command';
    await expect.poll(() => reports).toEqual([refused, undefined, ended, undefined]);
  });

  it('that is lost while a heartbeat is on its way does not wait for that', async () => {
    const reported = vi.fn();
    const adding = vi.spyOn(EventTarget.prototype, 'addEventListener');
    const began = performance.now();
    const lost = await keepListening(async (_hear, losing) => {
      setTimeout(() => losing.abort(new Error('cut off')), 10);
      return { mode: 'notify', announce: async () => {} };
    }, reported);
    expect(reported).toHaveBeenCalledWith('cut off');
    expect(performance.now() - began).toBeLessThan(1_500);
    // The types of Vitest do not say whose method it is.
    const closing = adding.mock.contexts[0] as EventTarget;
    // That of the pause before the next attempt: none stays of the one that failed.
    expect(getEventListeners(closing, 'abort')).toHaveLength(1);
    await lost.close();
  });
});

// These tests are the last, since they remove the accounts.
it.each([...tables, 'ApiToken', 'User'])('a truncation of %s is announced to all users', async (table) => {
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
