/** Times outside of the range of the response format: they are shown as the nearest time in it, and hide no record. */

import { expect, it } from 'vitest';
import { getDatamodel } from '../../src/database/generated/pothos.ts';
import { listedTypes } from '../../src/database/models.ts';
import { createAccount } from '../support/accounts.ts';
import { graphqlOnEveryPath } from '../support/gateway.ts';
import { gatewayWith } from '../support/setUp.ts';

const { gateway } = await gatewayWith([]);

const first = '0001-01-01T00:00:00.000Z';
const last = '9999-12-31T23:59:59.999Z';

/** All columns with times in a user's records, but the end of lock sessions: that of an active one is computed. */
const columns = Object.entries(getDatamodel().datamodel.models)
  .filter(([model]) => listedTypes.some((type) => type === model))
  .flatMap(([model, { fields }]) => fields.map(({ name, type }) => [model, name, type] as const))
  .filter(([, name, type]) => type === 'DateTime' && name !== 'endDate');

const lists = {
  devices: 'lastVisitedAt',
  dttDevices: 'lastVisitedAt lastLogAt createdAt',
  dttTemplates: 'createdAt updatedAt',
  dttSessions: 'createdAt',
  lkbxDevices: 'lastVisitedAt lastLogAt',
  lockTemplates: 'createdAt',
  lockSessions: 'startedAt endsAt createdAt segments { createdAt }',
  ossmDevices: 'lastVisitedAt pairingExpiresAt',
};

it.each([
  ['infinity', last],
  ['-infinity', first],
  ['294276-12-31 23:59:59.999Z', last],
  ['0001-12-31 23:59Z BC', first],
])('the time %s is shown as %s in every response, and all records are listed', async (time, shown) => {
  const { userId, token } = await createAccount(gateway.database.client, `of-${time}`);
  for (const [table, column] of columns)
    await gateway.database.pool.query(
      `UPDATE "${table}" SET "${column}" = $1 WHERE id = (SELECT min(id) FROM "${table}" WHERE "ownerId" = $2)`,
      [time, userId],
    );
  await gateway.database.pool.query(
    'UPDATE "LockSession" SET "endDate" = $1 WHERE "ownerId" = $2 AND NOT "isActive"',
    [time, userId],
  );
  await gateway.database.pool.query(
    `UPDATE "LockSegment" SET "createdAt" = $1 WHERE id = (SELECT max(part.id) FROM "LockSegment" part
    JOIN "LockSession" session ON session.id = part."sessionId" WHERE "ownerId" = $2)`,
    [time, userId],
  );
  for (const [list, fields] of Object.entries(lists)) {
    const query = `{ ${list} { totalCount nodes { databaseId ${fields} } } }`;
    const { data, errors } = await graphqlOnEveryPath(gateway, token, query);
    expect(errors, list).toBeUndefined();
    expect(data[list].nodes.length, list).toBe(data[list].totalCount);
    const names = fields.split(/\W+/).filter((name) => name.endsWith('At'));
    const text = JSON.stringify(data[list].nodes);
    for (const name of names) expect(text, list).toContain(`"${name}":"${shown}"`);
  }
});
