/**
 * Accounts of one mirror that are pulled in a random order, while records upstream appear, change, move and go: after each
 * run the account sees what it listed then, and all others see what they listed last, but for what has moved, and for private
 * templates that have changed since.
 */

import fc from 'fast-check';
import { expect, it } from 'vitest';
import { sync } from '../../../../src/extensions/upstream/mirror/sync.ts';
import { databaseWith } from '../../../support/setUp.ts';
import {
  addUser,
  createMemoryUpstream,
  type MemoryUpstream,
  templatesOf,
  upstreamOf,
} from '../support/memoryUpstream.ts';

const { database } = await databaseWith();

const accounts = [1, 2, 3] as const;
const names = ['amy', 'AMY', 'bea', 'Cat', 'dan'];

const owned = ['device', 'lock template', 'lock session', 'template', 'session'] as const;
const changes = [...owned, 'import', 'activate', 'rename'] as const;
/** A change upstream, or a pull: its kind, the account, the record, and a number that the details depend on. */
const steps = fc.array(
  fc.record({
    what: fc.constantFrom('pull', 'pull', 'pull', ...changes),
    who: fc.constantFrom(...accounts),
    id: fc.integer({ min: 1, max: 4 }),
    how: fc.integer({ min: 0, max: 4 }),
  }),
  { maxLength: 30 },
);
type Step = (typeof steps extends fc.Arbitrary<infer Value> ? Value : never)[number];

/** What random programs rarely do: a private template changes after another account has imported it. */
const privateChange: Step[] = (
  ['template', 'import', 'pull', 'activate', 'pull', 'session', 'pull', 'template', 'pull', 'pull'] as const
).map((what, index) => ({ what, who: [1, 2, 1, 2, 2, 2, 2, 1, 1, 2][index] === 2 ? 2 : 1, id: 1, how: 3 }));

/** Changes the upstream, and removes imports and active templates that are no longer possible. */
function change(memoryUpstream: MemoryUpstream, { what, who, id, how }: Step, version: number): void {
  const user = memoryUpstream.users.get(who);
  if (!user) return;
  const owned = { ownerId: who, version };
  const isGone = how === 0;
  if (what === 'device') put(memoryUpstream.dttDevices, id, isGone ? undefined : owned);
  if (what === 'lock template') put(memoryUpstream.lockTemplates, id, isGone ? undefined : owned);
  if (what === 'template')
    put(memoryUpstream.dttTemplates, id, isGone ? undefined : { ...owned, isPrivate: how > 2 });
  if (what === 'lock session') {
    for (const lock of memoryUpstream.lockSessions.values())
      if (how > 2 && lock.ownerId === who) lock.isActive = false;
    put(memoryUpstream.lockSessions, id, isGone ? undefined : { ...owned, isActive: how > 2 });
  }
  if (what === 'session')
    put(
      memoryUpstream.dttSessions,
      id,
      isGone ? undefined : { ...owned, trainerId: how, templateId: version % 2 ? null : how },
    );
  if (what === 'import') user.imports[how > 1 ? 'add' : 'delete'](id);
  if (what === 'activate') user.activeTemplate = isGone ? null : id;
  const name = names[how] ?? '';
  const isFree = [...memoryUpstream.users.values()].every(({ username }) => username !== name);
  if (what === 'rename' && isFree) user.username = name;
  for (const [account, others] of memoryUpstream.users) {
    for (const imported of others.imports)
      if (!memoryUpstream.dttTemplates.has(imported)) others.imports.delete(imported);
    if (
      others.activeTemplate !== null &&
      !templatesOf(memoryUpstream, account).includes(others.activeTemplate)
    )
      others.activeTemplate = null;
  }
}

function put<Value>(records: Map<number, Value>, id: number, value: Value | undefined): void {
  if (value === undefined) records.delete(id);
  else records.set(id, value);
}

/** What an account sees: its records by their kind and id, each with its visible fields as a text. */
interface View {
  username: string;
  active: number | null;
  records: Map<string, unknown>;
}

/** What the account lists upstream. The content of templates is shared by accounts, and compared separately. */
function listed(memoryUpstream: MemoryUpstream, account: number): View {
  const records = new Map<string, unknown>();
  for (const [id, { ownerId, version }] of memoryUpstream.dttDevices)
    if (ownerId === account) records.set(`device ${id}`, `serial ${version}`);
  for (const [id, { ownerId, version }] of memoryUpstream.lockTemplates)
    if (ownerId === account) records.set(`lock template ${id}`, `lock ${version}`);
  for (const [id, { ownerId, version, isActive }] of memoryUpstream.lockSessions)
    if (ownerId === account) records.set(`lock session ${id}`, `${version} ${isActive} ${id * 10}`);
  for (const [id, { ownerId, version, trainerId, templateId }] of memoryUpstream.dttSessions)
    if (ownerId === account)
      records.set(`session ${id}`, `version ${version} ${trainerId} ${templateId} ${id * 10} ${version}`);
  for (const id of templatesOf(memoryUpstream, account))
    records.set(
      `template ${id}`,
      memoryUpstream.dttTemplates.get(id)?.ownerId === account ? 'own' : 'imported',
    );
  const user = memoryUpstream.users.get(account);
  return { username: user?.username ?? '', active: user?.activeTemplate ?? null, records };
}

const seenBy = `
  SELECT 'device ' || id AS key, "serialNumber" AS value FROM "DttDevice" WHERE "ownerId" = $1
  UNION ALL SELECT 'lock template ' || id, name FROM "LockTemplate" WHERE "ownerId" = $1
  UNION ALL SELECT 'lock session ' || s.id, concat_ws(' ', s.duration, s."isActive"::text, g.id)
    FROM "LockSession" s LEFT JOIN "LockSegment" g ON g."sessionId" = s.id WHERE "ownerId" = $1
  UNION ALL SELECT 'session ' || s.id, concat_ws(' ', name, coalesce("trainerId", "goneTrainerId"),
      coalesce(coalesce("templateId", "goneTemplateId")::text, 'null'), g.id, g."repsMeasured")
    FROM "DttSession" s LEFT JOIN "TrainerSegment" g ON g."sessionId" = s.id WHERE "ownerId" = $1
  UNION ALL SELECT 'template ' || id, CASE WHEN "ownerId" = $1 THEN 'own' ELSE 'imported' END
    FROM "DttTemplate" WHERE EXISTS (SELECT FROM "DttLibraryEntry" WHERE "templateId" = id AND "userId" = $1)`;

async function seen(account: number): Promise<View> {
  const { pool } = database;
  const { rows } = await pool.query<{ key: string; value: string }>(seenBy, [account]);
  const users = await pool.query<{ username: string; active: number | null }>(
    'SELECT username, "activeTemplateId" AS active FROM "User" WHERE id = $1',
    [account],
  );
  const { username = '', active = null } = users.rows[0] ?? {};
  return { username, active, records: new Map(rows.map(({ key, value }) => [key, value])) };
}

/** Invalid states, which no pull may leave, each with a query that finds it. */
const faults = {
  'a template that nobody has':
    'SELECT FROM "DttTemplate" WHERE id NOT IN (SELECT "templateId" FROM "DttLibraryEntry")',
  'an owner without their template, or an import of it': `SELECT FROM "DttLibraryEntry" JOIN "DttTemplate" ON id = "templateId"
    WHERE ("importedAt" IS NULL) <> ("ownerId" IS NOT DISTINCT FROM "userId")`,
  'a session with a key to a template that its owner does not have': `SELECT FROM "DttSession" s WHERE "templateId" IS NOT NULL
    AND NOT EXISTS (SELECT FROM "DttLibraryEntry" e WHERE e."templateId" = s."templateId" AND e."userId" = s."ownerId")`,
  'a session with the number of a template that its owner has': `SELECT FROM "DttSession" s JOIN "DttLibraryEntry" e
    ON e."templateId" = s."goneTemplateId" AND e."userId" = s."ownerId"`,
  'a session with the number of a trainer that its owner has': `SELECT FROM "DttSession" s JOIN "DttDevice" d
    ON d.id = s."goneTrainerId" AND d."ownerId" = s."ownerId"`,
  'details that are pending': `SELECT FROM "DttTemplate" WHERE "detailsPending" UNION ALL SELECT FROM "DttSession" WHERE "detailsPending"`,
};

/**
 * Pulls an account, and changes the views to what each account has to see afterwards.
 * @param versions the version of each template that was read last, by any account.
 */
async function pull(
  memoryUpstream: MemoryUpstream,
  account: number,
  views: Map<number, View>,
  versions: Map<number, number>,
): Promise<void> {
  const own = listed(memoryUpstream, account);
  for (const [other, view] of views) {
    if (other === account) continue;
    for (const [key, value] of own.records) {
      // A session that another account has stays with that account. All else that this account lists moves to it.
      if (key.startsWith('session ')) {
        if (view.records.has(key)) own.records.delete(key);
      } else if (key.startsWith('template ')) {
        const id = Number(key.slice('template '.length));
        const { version, isPrivate } = memoryUpstream.dttTemplates.get(id) ?? {};
        // No other account was told what a private template says now.
        const isNews = isPrivate && versions.get(id) !== version;
        const isOwn = view.records.get(key) === 'own';
        if (isOwn ? value === 'own' : isNews) view.records.delete(key);
      } else view.records.delete(key);
    }
    if (view.active !== null && !view.records.has(`template ${view.active}`)) view.active = null;
    if (view.username === own.username) view.username += ` (id ${other})`;
    if (view.username.toLowerCase() === own.username.toLowerCase()) own.username += ` (id ${account})`;
  }
  views.set(account, own);
  for (const id of templatesOf(memoryUpstream, account))
    versions.set(id, memoryUpstream.dttTemplates.get(id)?.version ?? 0);
  const report = await sync({
    pool: database.pool,
    upstream: upstreamOf(memoryUpstream, account),
    full: true,
  });
  expect(report).toBeDefined();
}

async function expectNoFaults(): Promise<void> {
  for (const [fault, sql] of Object.entries(faults))
    expect((await database.pool.query(sql)).rowCount, fault).toBe(0);
}

it('an account sees what it listed last, whatever is changed upstream and whichever other accounts are pulled', async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (program) => {
      await database.pool.query('TRUNCATE "Mirror", "User", "DttTemplate" CASCADE');
      const memoryUpstream = createMemoryUpstream();
      for (const id of accounts) addUser(memoryUpstream, id);
      const views = new Map<number, View>();
      const versions = new Map<number, number>();
      for (const [index, step] of [
        ...program,
        ...accounts.map((who) => ({ what: 'pull', who, id: 1, how: 0 }) as const),
      ].entries()) {
        if (step.what !== 'pull') {
          change(memoryUpstream, step, index);
          continue;
        }
        await pull(memoryUpstream, step.who, views, versions);
        for (const [account, view] of views) expect(await seen(account), `account ${account}`).toEqual(view);
        const { rows } = await database.pool.query<{ id: number; duration: number; name: string }>(
          'SELECT t.id, duration, name FROM "DttTemplate" t LEFT JOIN "DttTemplateSegment" s ON s."templateId" = t.id',
        );
        for (const { id, duration, name } of rows)
          expect({ duration, name }).toEqual({
            duration: versions.get(id),
            name: `template ${id}, version ${versions.get(id)}`,
          });
        await expectNoFaults();
      }
    }),
    { numRuns: Number(process.env.ISOLATION_RUNS ?? 10), examples: [[privateChange]] },
  );
}, 300_000);
