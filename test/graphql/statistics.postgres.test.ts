/** Statistics as clients request them: what the viewer may see, errors of a request, and its complexity. */

import pg from 'pg';
import { describe, expect, it, vi } from 'vitest';
import { graphqlOnce, graphqlOnEveryPath } from '../support/gateway.ts';
import { gatewayWith } from '../support/setUp.ts';

const { gateway, alice, bob } = await gatewayWith(['alice', 'bob']);
const { dttSession } = gateway.database.client;
const [first = 0, second = 0] = alice.dttSessions;
const [theirs] = bob.dttTemplates;
await dttSession.updateMany({ where: { id: { in: [first, second] } }, data: { detailsPending: true } });
await dttSession.update({ where: { id: first }, data: { templateId: theirs } });

const ask = async (query: string, variables?: Record<string, unknown>) => {
  const { data, errors } = await graphqlOnEveryPath(gateway, alice.token, query, variables);
  expect(errors).toBeUndefined();
  return data;
};

it('statistics count a session in each segment type that it has, and those whose details are pending', async () => {
  const { types, total } = await ask(
    `{ types: dttSessionStats(by: [SEGMENT_TYPE], timeZone: "gmt") { timeZone groups { segmentType rawSegmentType sessionCount } }
       total: dttSessionStats(by: [DAY, TRAINER], maxGroups: 1) { total { detailsPendingCount sessionCount } } }`,
  );
  expect(types).toEqual({
    timeZone: 'gmt',
    groups: [
      { segmentType: 'ENDURANCE', rawSegmentType: 'endurance', sessionCount: 6 },
      { segmentType: 'REPETITION', rawSegmentType: 'repetition', sessionCount: 6 },
    ],
  });
  // Groups that are not selected have no limit.
  expect(total).toEqual({ total: { detailsPendingCount: 2, sessionCount: 6 } });
});

it('statistics have the records that sessions are grouped by, and none of other users', async () => {
  const { dttSessionStats, keys } = await ask(
    `{ dttSessionStats(by: [TEMPLATE, TRAINER]) { groups { templateId template { databaseId } trainer { databaseId } trainerId sessionCount } }
       keys: dttSessionStats(by: [MONTH, TRAINER]) { groups { period { date from to } trainerId } } }`,
  );
  const [one, two] = alice.dttDevices;
  const [own, mine] = alice.dttTemplates;
  const group = (templateId: number | null, trainerId: number, sessionCount: number, isVisible = true) => ({
    templateId,
    template: isVisible ? { databaseId: templateId } : null,
    trainerId,
    trainer: { databaseId: trainerId },
    sessionCount,
  });
  expect(dttSessionStats.groups).toEqual([
    group(own, one, 2),
    group(mine, two, 2),
    group(theirs, one, 1, false),
    group(null, two, 1, false),
  ]);
  const period = { date: '2026-01-01', from: '2026-01-01T00:00:00.000Z', to: '2026-02-01T00:00:00.000Z' };
  expect(keys.groups).toEqual([one, two].map((trainerId) => ({ period, trainerId })));
});

it('statistics of lock sessions have durations, by state and template, and the days on which they started', async () => {
  const figures = 'activeSessionCount segmentCount totalDurationSeconds';
  const { lockSessionStats, days } = await ask(
    `{ lockSessionStats(by: [LOCK_STATE, TEMPLATE], where: { startedAt: { gte: "2025-12-31T00:00:00Z" } }) {
        total { sessionCount firstSessionAt lastSessionAt averageDurationSeconds } groups { lockState template { databaseId } ${figures} } }
       days: lockSessionStats(by: [DAY], fill: true, where: { startedAt: { gte: "2025-12-31T00:00:00Z", lt: "2026-01-03T00:00:00Z" } }) { groups { sessionCount } } }`,
  );
  const [firstSessionAt, lastSessionAt] = ['2026-01-01T00:20:00.000Z', '2026-01-01T00:30:00.000Z'];
  const one = { segmentCount: 2, totalDurationSeconds: 3600 };
  const [first, second] = alice.lockTemplates.map((databaseId) => ({ databaseId }));
  expect(lockSessionStats).toEqual({
    total: { sessionCount: 2, averageDurationSeconds: 3600, firstSessionAt, lastSessionAt },
    groups: [
      { ...one, activeSessionCount: 1, lockState: 'locked', template: first },
      { ...one, activeSessionCount: 0, lockState: 'completed', template: second },
    ],
  });
  expect(days.groups).toEqual([0, 2, 0].map((sessionCount) => ({ sessionCount })));
});

describe('a request for statistics', () => {
  const years = 'where: { createdAt: { gte: "1990-01-01T00:00:00Z" } }, by: [DAY], fill: true';
  const zone = 'timeZone must be the name of a time zone, such as "Europe/Berlin" or "UTC", and';
  const limit = 'maxGroups must be an integer from 1 to 1000';
  const moreThan = (most: number) => `There are more than ${most} groups: ask`;
  it.each<[given: string, argument: string, message: string]>([
    ['by: [DAY, MONTH]', 'by', 'by takes one of DAY, WEEK and MONTH, and not several'],
    ['by: [TEMPLATE], fill: true', 'fill', 'fill needs DAY, WEEK or MONTH in by'],
    ['timeZone: "Europe/Berln"', 'timeZone', `${zone} is not "Europe/Berln"`],
    ['timeZone: "+01:00"', 'timeZone', `${zone} is not "+01:00"`],
    ['timeZone: "CET"', 'timeZone', `${zone} is not "CET"`],
    [`timeZone: "${'x'.repeat(65)}"`, 'timeZone', `${zone} is not "${'x'.repeat(64)}"`],
    [years, 'maxGroups', `${moreThan(366)} for up to 1000 in maxGroups, for longer periods`],
    [`${years}, maxGroups: 1000`, 'maxGroups', `${moreThan(1000)} for longer periods`],
    ['by: [TEMPLATE], maxGroups: 1', 'maxGroups', moreThan(1)],
    ['maxGroups: 0', 'maxGroups', limit],
    ['maxGroups: 1001', 'maxGroups', limit],
    ['where: { createdAt: { gte: null } }, by: [DAY], fill: true', 'where', 'must not be null'],
  ])('is rejected with the reason: %s', async (given, argument, message) => {
    const { data, errors } = await graphqlOnEveryPath(
      gateway,
      alice.token,
      `{ dttSessionStats(${given}) { groups { sessionCount } } }`,
    );
    expect(data).toEqual({ dttSessionStats: null });
    expect(errors).toEqual([
      expect.objectContaining({
        message: expect.stringContaining(message),
        extensions: { code: 'BAD_USER_INPUT', argument },
      }),
    ]);
  });

  const unknownZone = {
    message: `${zone} the database of this gateway does not know "Asia/Kathmandu"`,
    extensions: { code: 'BAD_USER_INPUT', argument: 'timeZone' },
  };
  it.each([
    ['22023', unknownZone],
    ['22003', { message: 'Internal server error', extensions: { code: 'INTERNAL_SERVER_ERROR' } }],
  ])('is rejected when the database fails with %s', async (code, error) => {
    vi.spyOn(gateway.database.pool, 'query').mockImplementation(() => {
      throw Object.assign(new pg.DatabaseError('failed', 0, 'error'), { code });
    });
    const query = '{ dttSessionStats(by: [DAY], timeZone: "Asia/Kathmandu") { groups { sessionCount } } }';
    const { errors } = await graphqlOnce(gateway, alice.token, query);
    expect(errors).toMatchObject([error]);
  });
});
