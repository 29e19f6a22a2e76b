/** Which fields of a response may be null or left out (docs/rest.md#values), by a user whose records have no more than they must. */

import { describe, expect, it } from 'vitest';
import { createToken } from '../../src/auth/tokens.ts';
import { rest } from '../support/gateway.ts';
import { type JsonRecord, listOf, recordOf } from '../support/restResponses.ts';
import { gatewayWith } from '../support/setUp.ts';

const { gateway } = await gatewayWith([]);
const { pool } = gateway.database;
// Every row has the id 1, and no column that could have been left out.
await pool.query(`
  INSERT INTO "User" (username, "subscriptionTier") VALUES ('bare', 'ultra');
  INSERT INTO "DttDevice" ("bubbleId", "ownerId") VALUES ('a', 1);
  INSERT INTO "DttTemplate" ("bubbleId", "ownerId", name, "targetDepth", "targetWindow") VALUES ('a', 1, 'a', 50, 10);
  INSERT INTO "DttTemplateSegment" ("templateId", position, type, duration) VALUES (1, 0, 'warmup', 60);
  UPDATE "User" SET "activeTemplateId" = 1;
  INSERT INTO "DttSession" ("bubbleId", "ownerId", "trainerId") VALUES ('a', 1, 1);
  INSERT INTO "TrainerSegment" ("sessionId", type, "order") VALUES (1, 'freeform', 0);
  INSERT INTO "LkbxDevice" ("bubbleId", "ownerId") VALUES ('a', 1);
  INSERT INTO "LockTemplate" ("ownerId", name, duration) VALUES (1, 'a', 60);
  INSERT INTO "LockSession" ("bubbleId", "publicId", "ownerId", "lockState", duration, "isActive", "templateId")
    VALUES ('a', 'a', 1, 'locked', 60, true, 1);
  INSERT INTO "LockSegment" ("sessionId", type, "isLocked") VALUES (1, 'start', true);
  INSERT INTO "OssmDevice" ("bubbleId", "ownerId", chip) VALUES ('a', 1, 'ESP32')`);
const { token } = await createToken(pool, 'bare', 'test');

const ask = (path: string) => rest(gateway, token, path);

it('a record without any value that it could lack has empty texts and zeros in their place', async () => {
  for (const [path, values] of Object.entries({
    '/users/me': { profileImage: '', profileDescription: '', profileTitle: '', league: 0, dttTotalReps: 0 },
    '/dtt/1': { macAddress: '', serialNumber: '', softwareVersion: '', apiHits: 0 },
    '/dtt/templates/1': { description: '', tagline: '', message: '', Segment: [{ repeat: 1 }] },
    '/lkbx/templates/1': { breakRegularity: 0 },
    '/lkbx/sessions/1': { name: '', createdAt: expect.any(String), endDate: expect.any(String) },
  }))
    expect(recordOf(await ask(path)), path).toMatchObject(values);
});

describe('the end of a lock session', () => {
  const stored = '2026-01-02T00:00:00.000Z';
  it.each([
    ['the start plus the duration, while it is active without an end date', true, null, 60],
    ['the stored end date, while it is active', true, stored, stored],
    ['null, when it is over without an end date', false, null, null],
    ['the stored end date, when it is over', false, stored, stored],
  ])('is %s', async (_, isActive, endDate, expected) => {
    const { client } = gateway.database;
    const lockState = isActive ? 'locked' : 'completed';
    const { startDate } = await client.lockSession.update({
      where: { id: 1 },
      data: { isActive, endDate, lockState },
    });
    const end =
      typeof expected === 'number' ? new Date(Number(startDate) + expected * 1000).toISOString() : expected;
    // The change reaches the gateway a moment later.
    await expect
      .poll(async () => recordOf(await ask('/lkbx/sessions/1')))
      .toMatchObject({ isActive, endDate: end });
  });
});

it('events of a lock session at the same instant have the order of their ids', async () => {
  await gateway.database.pool.query(
    `INSERT INTO "LockSegment" (id, "sessionId", type, "isLocked", "createdAt")
     SELECT id, 1, 'lock', true, '2020-01-01' FROM unnest('{9,7,8}'::int[]) AS id`,
  );
  await expect
    .poll(async () => recordOf(await ask('/lkbx/sessions/1')))
    .toMatchObject({ LockSegment: [{ id: 7 }, { id: 8 }, { id: 9 }, { id: 1 }] });
});

describe('a segment of a training session', () => {
  const segmentsOf = (record: JsonRecord | undefined) => record?.TrainerSegment;

  it('leaves out every field without a value, in lists and by id, except whether it was passed', async () => {
    const bare = { id: 1, type: 'freeform', passed: null };
    expect(segmentsOf(listOf(await ask('/dtt/sessions')).data[0])).toEqual([bare]);
    expect(segmentsOf(recordOf(await ask('/dtt/sessions/latest')))).toEqual([bare]);
    const createdAt = expect.any(String);
    expect(segmentsOf(recordOf(await ask('/dtt/sessions/1')))).toEqual([{ ...bare, order: 0, createdAt }]);
  });

  it('has the fields that have a value, zeros included', async () => {
    const { pool } = gateway.database;
    const values = { percentGrade: 0, points: 0, repsMeasured: 0, distanceTravelled: 0.5 };
    const columns = Object.entries(values).map(([name, value]) => `"${name}" = ${value}`);
    await pool.query(`UPDATE "TrainerSegment" SET "createdAt" = NULL, ${columns.join()}`);
    await expect
      .poll(async () => segmentsOf(recordOf(await ask('/dtt/sessions/1'))))
      .toEqual([{ id: 1, type: 'freeform', passed: null, order: 0, ...values }]);
  });
});
