/** Each constraint of the database, with writes that it rejects, whichever client makes them. */

import { describe, expect, it } from 'vitest';
import { listedTypes } from '../../src/database/models.ts';
import { importTemplate } from '../support/accounts.ts';
import { attemptIn, databaseWith } from '../support/setUp.ts';

const { database, alice, bob } = await databaseWith('alice', 'bob');
await importTemplate(database.client, alice, bob.dttTemplates[0]);
await database.client.user.create({ data: { username: 'poor' } });
await database.client.mirror.create({ data: { source: 'test' } });
await database.client.mirroredAccount.create({ data: { userId: alice.userId } });

const firstOf = (table: string) => `WHERE id = (SELECT min(id) FROM "${table}")`;
const set = (table: string, column: string, value: string) =>
  `UPDATE "${table}" SET "${column}" = ${value} ${firstOf(table)}`;
const copyOf = (table: string, column: string) =>
  `UPDATE "${table}" SET "${column}" = (SELECT min("${column}") FROM "${table}")`;

/** Updates of each of these columns, in the form `Table.column`, that the check of this name rejects. */
function rejectedBy(check: string, columns: string, values: readonly string[]): [string, string[]][] {
  return columns.split(/\s+/).map((place) => {
    const [table = '', column = ''] = place.split('.');
    return [`${table}_${column}_${check}`, values.map((value) => set(table, column, value))];
  });
}

const withPublicId = listedTypes.filter((table) => table !== 'LockTemplate');
const library = 'INSERT INTO "DttLibraryEntry" ("userId", "templateId") VALUES';
const token = 'INSERT INTO "ApiToken" ("userId", name, digest, slot)';
const digest = `sha256(gen_random_uuid()::text::bytea)`;

/** Inserts a copy of the first row with other values in these columns. Columns that the table does not have are ignored. */
const another = (table: string, columns: object) =>
  `INSERT INTO "${table}" SELECT (jsonb_populate_record(t, '${JSON.stringify({
    id: 1_000_000,
    bubbleId: 'another',
    publicId: 'another',
    ...columns,
  })}')).* FROM "${table}" t ${firstOf(table)}`;
const rowWithoutOwner = (table: string) =>
  another(table, {
    ownerId: 1_000_000,
    isActive: false,
    trainerId: null,
    goneTrainerId: 1,
    templateId: null,
  });

/** Each constraint, with writes that it rejects. */
const constraints: Record<string, string[]> = {
  ...Object.fromEntries([
    ...rejectedBy(
      'finite',
      `DttTemplate.targetDepth DttTemplate.targetWindow LkbxDevice.hueShift TrainerSegment.speedMeasured
       TrainerSegment.speedTarget TrainerSegment.targetDepth TrainerSegment.targetWindow TrainerSegment.strokeLength`,
      [`'NaN'`, `'Infinity'`, `'-Infinity'`],
    ),
    ...rejectedBy(
      'finite_not_negative',
      'TrainerSegment.longestDeepthroat TrainerSegment.distanceTravelled',
      [`'NaN'`, `'Infinity'`, '-0.5'],
    ),
    ...rejectedBy('percent', 'TrainerSegment.percentGrade', [`'NaN'`, '-0.5', '100.5']),
    ...rejectedBy(
      'not_negative',
      `User.league User.rank User.dttTotalReps User.dttTotalSessions DttDevice.apiHits DttTemplateSegment.position
       DttTemplateSegment.duration DttTemplateSegment.repeat TrainerSegment.order TrainerSegment.durationMeasured
       TrainerSegment.durationTarget TrainerSegment.repsMeasured TrainerSegment.repsTarget LockTemplate.duration
       LockTemplate.breakRegularity LockSession.duration`,
      ['-1'],
    ),
    ...rejectedBy('not_blank', 'User.username ApiToken.name DttTemplate.name LockTemplate.name', [
      `''`,
      `' '`,
      `E'\\n\\t'`,
    ]),
    ...rejectedBy('mac', 'DttDevice.macAddress LkbxDevice.macAddress OssmDevice.macAddress', [
      `' '`,
      `'02:00:00:00:00:0a'`,
      `'02-00-00-00-00-0A'`,
      `'02000000000A'`,
      `'02:00:00:00:00'`,
      `E'02:00:00:00:00:0A\\n'`,
    ]),
    ...rejectedBy('from_1_to_5', 'ApiToken.slot', ['0', '6']),
    ...rejectedBy('known', 'ApiToken.scope', [`''`, `'MANAGE'`]),
    ...rejectedBy('sha256', 'ApiToken.digest ApiToken.previousDigest', [
      `'\\x00'`,
      `decode(repeat('00', 33), 'hex')`,
    ]),
  ]),
  LockSession_active_not_over: ['completed', 'abandoned'].map(
    (state) => `UPDATE "LockSession" SET "lockState" = '${state}' WHERE "isActive"`,
  ),
  DttSession_one_trainer: [set('DttSession', 'goneTrainerId', '7'), set('DttSession', 'trainerId', 'NULL')],
  DttSession_one_template: [set('DttSession', 'goneTemplateId', '7')],
  DttTemplate_one_owner: [set('DttTemplate', 'foreignOwnerId', '7'), set('DttTemplate', 'ownerId', 'NULL')],
  ApiToken_previous_until: [
    `UPDATE "ApiToken" SET "previousDigest" = ${digest}`,
    set('ApiToken', 'previousValidUntil', 'now()'),
  ],
  Mirror_only_one: [`INSERT INTO "Mirror" (id, source) VALUES (2, 'x')`],

  ...Object.fromEntries(withPublicId.map((table) => [`${table}_bubbleId_key`, [copyOf(table, 'bubbleId')]])),
  LockSession_publicId_key: [copyOf('LockSession', 'publicId')],
  User_username_key: [copyOf('User', 'username')],
  User_username_in_any_case: [`INSERT INTO "User" (username) VALUES ('ALICE')`],
  DttTemplateSegment_templateId_position_key: ['UPDATE "DttTemplateSegment" SET position = 0'],
  TrainerSegment_sessionId_order_key: ['UPDATE "TrainerSegment" SET "order" = 0'],
  LockSession_one_active_per_owner: [`UPDATE "LockSession" SET "isActive" = true, "lockState" = 'locked'`],
  ApiToken_digest_key: [`${token} SELECT "userId", 'x', digest, 2 FROM "ApiToken"`],
  ApiToken_previousDigest_key: [
    `UPDATE "ApiToken" SET "previousDigest" = sha256('x'), "previousValidUntil" = now()`,
  ],
  ApiToken_slot_in_use: [`${token} SELECT ${alice.userId}, 'x', ${digest}, 1 FROM "ApiToken"`],
  // A user's own template is in the library already, and cannot be imported.
  DttLibraryEntry_pkey: [
    `${library} (${alice.userId}, ${alice.dttTemplates[0]})`,
    `${library} (${alice.userId}, ${bob.dttTemplates[0]})`,
  ],

  ...Object.fromEntries(listedTypes.map((table) => [`${table}_ownerId_fkey`, [rowWithoutOwner(table)]])),
  ApiToken_userId_fkey: [`${token} VALUES (1000000, 'x', ${digest}, 1)`],
  MirroredAccount_userId_fkey: ['UPDATE "MirroredAccount" SET "userId" = 1000000'],
  User_activeTemplateId_fkey: [set('User', 'activeTemplateId', '1000000')],
  // A template of another user that this user has not imported.
  User_activeTemplateId_id_fkey: [set('User', 'activeTemplateId', String(bob.dttTemplates[1]))],
  DttLibraryEntry_userId_fkey: [`${library} (1000000, ${alice.dttTemplates[0]})`],
  DttLibraryEntry_templateId_fkey: [`${library} (${alice.userId}, 1000000)`],
  DttTemplateSegment_templateId_fkey: [set('DttTemplateSegment', 'templateId', '1000000')],
  DttSession_trainerId_ownerId_fkey: [
    set('DttSession', 'trainerId', '1000000'),
    set('DttSession', 'trainerId', String(bob.dttDevices[0])),
    // A device that sessions refer to can neither be deleted nor get another owner.
    'DELETE FROM "DttDevice"',
    set('DttDevice', 'ownerId', String(bob.userId)),
  ],
  DttSession_templateId_fkey: [set('DttSession', 'templateId', '1000000')],
  TrainerSegment_sessionId_fkey: [set('TrainerSegment', 'sessionId', '1000000')],
  LockSession_templateId_ownerId_fkey: [
    set('LockSession', 'templateId', '1000000'),
    set('LockSession', 'templateId', String(bob.lockTemplates[0])),
    `UPDATE "LockTemplate" SET "ownerId" = ${bob.userId} WHERE id = ${alice.lockTemplates[0]}`,
  ],
  LockSegment_sessionId_fkey: [set('LockSegment', 'sessionId', '1000000')],

  // Constraints that triggers enforce.
  ApiToken_only_for_ultra: [
    `${token} SELECT id, 'x', ${digest}, 1 FROM "User" WHERE username = 'poor'`,
    `UPDATE "ApiToken" SET "userId" = (SELECT id FROM "User" WHERE username = 'poor')`,
  ],
  DttLibraryEntry_keeps_own: [
    `DELETE FROM "DttLibraryEntry" WHERE "importedAt" IS NULL`,
    `UPDATE "DttLibraryEntry" SET "userId" = ${bob.userId} WHERE "templateId" = ${alice.dttTemplates[0]}`,
    `UPDATE "DttLibraryEntry" SET "templateId" = ${bob.dttTemplates[2]} WHERE "templateId" = ${alice.dttTemplates[0]}`,
  ],
};

/** Constraints that others imply, so that no write violates one of these alone. */
const implied = [
  // Foreign keys refer to these, and the id alone is unique already.
  'DttDevice_id_ownerId_key',
  'LockTemplate_id_ownerId_key',
];

describe('the database', () => {
  it('has no constraint that these writes do not test', async () => {
    const { rows } = await database.pool.query<{ name: string }>(
      `SELECT conname AS name FROM pg_constraint WHERE contype IN ('c', 'f') AND connamespace = 'public'::regnamespace
       UNION SELECT relname FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
       WHERE indisunique AND NOT indisprimary AND relnamespace = 'public'::regnamespace ORDER BY 1`,
    );
    const byTriggersOrKeys = ['ApiToken_only_for_ultra', 'DttLibraryEntry_keeps_own', 'DttLibraryEntry_pkey'];
    const tested = Object.keys(constraints).filter((name) => !byTriggersOrKeys.includes(name));
    expect([...tested, ...implied].sort()).toEqual(rows.map(({ name }) => name).sort());
  });

  it('rejects each of these writes, and names the constraint', async () => {
    const outcomes: Record<string, unknown> = {};
    const expected: Record<string, unknown> = {};
    for (const [constraint, writes] of Object.entries(constraints)) {
      expect(writes).not.toEqual([]);
      for (const sql of writes) {
        const place = `${constraint}: ${sql}`;
        expected[place] = constraint;
        const outcome = await attemptIn(database.pool, sql);
        outcomes[place] = typeof outcome === 'string' ? outcome : (outcome.constraint ?? outcome.message);
      }
    }
    expect(outcomes).toEqual(expected);
  });

  it('ignores library entries of own templates, which a data-only restore inserts again, and rejects other duplicates', async () => {
    const [own] = alice.dttTemplates;
    const [imported, other] = bob.dttTemplates;
    const write = async (values: string) => {
      const { rowCount } = await database.pool.query(
        `INSERT INTO "DttLibraryEntry" ("userId", "templateId", "importedAt") VALUES ${values}`,
      );
      return rowCount;
    };
    const entries = async () =>
      (await database.pool.query('SELECT * FROM "DttLibraryEntry" ORDER BY "userId", "templateId"')).rows;
    const before = await entries();
    await database.pool.query('UPDATE "DttLibraryEntry" SET "userId" = "userId"');
    // An entry that is missing, as after a replication that was cut, comes back.
    await database.pool.query(
      `BEGIN; SET LOCAL session_replication_role = replica; DELETE FROM "DttLibraryEntry" WHERE "templateId" = ${own}; COMMIT`,
    );
    expect(await write(`(${alice.userId}, ${own}, NULL)`)).toBe(1);
    expect(await write(`(${alice.userId}, ${own}, NULL), (${bob.userId}, ${other}, NULL)`)).toBe(0);
    for (const twice of [
      `(${alice.userId}, ${own}, now())`,
      `(${alice.userId}, ${own}, DEFAULT)`,
      `(${alice.userId}, ${imported}, NULL)`,
      `(${alice.userId}, ${imported}, now())`,
    ])
      await expect(write(twice), twice).rejects.toMatchObject({ constraint: 'DttLibraryEntry_pkey' });
    expect(await entries()).toEqual(before);
  });
});
