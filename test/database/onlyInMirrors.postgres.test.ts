/** Values that only a mirror may have: in any other database, every write of them is rejected. */

import { type GraphQLObjectType, isObjectType } from 'graphql';
import { describe, expect, it } from 'vitest';
import { isNullIfUnknown } from '../../reading/jsonSchema.ts';
import { isRecordType } from '../../src/database/models.ts';
import { needsOf } from '../../src/schema/loading/rows.ts';
import { schema } from '../../src/schema/schema.ts';
import { createAccount } from '../support/accounts.ts';
import { attemptIn, databaseWith } from '../support/setUp.ts';

const { database } = await databaseWith();
await createAccount(database.client, 'alice');

/** The columns whose fields say that they are null only in a mirror, as `Table.column`. */
const columns = Object.values(schema.getTypeMap())
  .filter((type): type is GraphQLObjectType => isObjectType(type) && isRecordType(type.name))
  .flatMap((type) =>
    Object.values(type.getFields())
      .filter(isNullIfUnknown)
      .flatMap(({ name }) => (needsOf(type, name).columns ?? []).map((column) => `${type.name}.${column}`)),
  )
  .toSorted();

const attempt = (sql: string, first?: string) => attemptIn(database.pool, sql, first);

const isMirror = `INSERT INTO "Mirror" (source) VALUES ('https://example.com')`;

describe('a column that is null only in a mirror', () => {
  it('has a trigger, and a field that says so', async () => {
    const { rows } = await database.pool.query<{ name: string }>(
      `SELECT replace(tgrelid::regclass::text, '"', '') || '.' || name AS name
       FROM pg_trigger, regexp_split_to_table(rtrim(encode(tgargs, 'escape'), '\\000'), '\\\\000') AS columns(name)
       WHERE tgname = 'has_values'`,
    );
    expect(rows.map(({ name }) => name).toSorted()).toEqual(columns);
    expect(columns).toContain('DttDevice.macAddress');
  });

  it.each(columns)('rejects null elsewhere: %s', async (place) => {
    const [table = '', column = ''] = place.split('.');
    const rejected = {
      code: '23502',
      table,
      column,
      message: `null value in column "${column}" of relation "${table}": only a mirror may have none`,
    };
    const update = `UPDATE "${table}" SET "${column}" = NULL WHERE id = (SELECT min(id) FROM "${table}")`;
    const insert = `INSERT INTO "${table}" SELECT (jsonb_populate_record(t, '${JSON.stringify({
      id: 1_000_000,
      username: 'another',
      bubbleId: 'another',
      publicId: 'another',
      position: 1_000_000,
      isActive: false,
      [column]: null,
    })}')).* FROM "${table}" t LIMIT 1`;
    for (const write of [update, insert]) {
      expect(await attempt(write), write).toMatchObject(rejected);
      expect(await attempt(write, isMirror), write).toBe('wrote 1 rows');
    }
  });
});

it.each([
  `UPDATE "TrainerSegment" SET type = 'Bounce' WHERE id = (SELECT min(id) FROM "TrainerSegment")`,
  `INSERT INTO "TrainerSegment" ("sessionId", "order", type) SELECT min(id), 9, '' FROM "DttSession"`,
])('a type of trainer segments that the interface does not name is rejected elsewhere: %s', async (write) => {
  expect(await attempt(write)).toMatchObject({
    code: '23514',
    message: expect.stringContaining('only a mirror may have other types'),
  });
  expect(await attempt(write, isMirror)).toBe('wrote 1 rows');
});
