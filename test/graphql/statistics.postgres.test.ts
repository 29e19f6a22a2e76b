/** Statistics as clients request them: what the viewer may see, errors of a request, and its complexity. */

import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { readTimeZone } from '../../src/schema/loading/timeZone.ts';
import { type Account, createAccount } from '../support/accounts.ts';
import { graphqlOnce, graphqlOnEveryPath, openTestGateway, type TestGateway } from '../support/gateway.ts';

let gateway: TestGateway;
let alice: Account;
let bob: Account;

beforeAll(async () => {
  gateway = await openTestGateway();
  alice = await createAccount(gateway.database.client, 'alice');
  bob = await createAccount(gateway.database.client, 'bob');
});
afterAll(() => gateway?.close());

const ask = async (query: string, variables?: Record<string, unknown>) => {
  const { data, errors } = await graphqlOnEveryPath(gateway, alice.token, query, variables);
  expect(errors).toBeUndefined();
  return data;
};

describe('statistics of training sessions', () => {
  it('count each session once, however many segments it has, and in each segment type that it has', async () => {
    const figures =
      'sessionCount passedSessionCount failedSessionCount segmentCount totalPoints totalRepsMeasured averageGradePercent';
    const { dttSessionStats } = await ask(
      `{ dttSessionStats(by: [SEGMENT_TYPE]) { timeZone total { ${figures} } groups { segmentType rawSegmentType period { date } ${figures} } } }`,
    );
    const sessions = { sessionCount: 6, passedSessionCount: 2, failedSessionCount: 3 };
    const none = { totalPoints: null, totalRepsMeasured: null, averageGradePercent: null };
    expect(dttSessionStats).toEqual({
      timeZone: 'UTC',
      total: {
        ...sessions,
        segmentCount: 12,
        totalPoints: 60,
        totalRepsMeasured: 108,
        averageGradePercent: 90.5,
      },
      groups: [
        {
          ...none,
          ...sessions,
          segmentCount: 6,
          totalPoints: 60,
          averageGradePercent: 90.5,
          segmentType: 'ENDURANCE',
          rawSegmentType: 'endurance',
          period: null,
        },
        {
          ...none,
          ...sessions,
          segmentCount: 6,
          totalRepsMeasured: 108,
          segmentType: 'REPETITION',
          rawSegmentType: 'repetition',
          period: null,
        },
      ],
    });
  });

  it('have the records that sessions are grouped by, and none of other users', async () => {
    const { client } = gateway.database;
    const [first = 0] = alice.dttSessions;
    const [, mine = 0] = alice.dttTemplates;
    const [theirs] = bob.dttTemplates;
    const { templateId } = await client.dttSession.findUniqueOrThrow({ where: { id: first } });
    await client.dttSession.update({ where: { id: first }, data: { templateId: theirs } });
    try {
      const { dttSessionStats } = await ask(
        '{ dttSessionStats(by: [TEMPLATE, TRAINER]) { groups { templateId template { databaseId } trainer { databaseId } trainerId sessionCount } } }',
      );
      const [one, two] = alice.dttDevices;
      const own = alice.dttTemplates[0];
      const group = (template: number | null, trainer: number, sessionCount: number, isVisible = true) => ({
        templateId: template,
        template: template !== null && isVisible ? { databaseId: template } : null,
        trainerId: trainer,
        trainer: { databaseId: trainer },
        sessionCount,
      });
      expect(dttSessionStats.groups).toEqual([
        group(own, one, 2),
        group(mine, two, 2),
        group(theirs, one, 1, false),
        group(null, two, 1),
      ]);
    } finally {
      await client.dttSession.update({ where: { id: first }, data: { templateId } });
    }
  });

  it('count the sessions whose details are pending', async () => {
    const { client } = gateway.database;
    const where = { id: { in: alice.dttSessions.slice(0, 2) } };
    await client.dttSession.updateMany({ where, data: { detailsPending: true } });
    const { dttSessionStats } = await ask(
      '{ dttSessionStats { total { detailsPendingCount sessionCount } groups { sessionCount } } }',
    );
    await client.dttSession.updateMany({ where, data: { detailsPending: false } });
    expect(dttSessionStats).toEqual({ total: { detailsPendingCount: 2, sessionCount: 6 }, groups: [] });
  });

  it('are read with one statement, and each link with one more', async () => {
    const spy = vi.spyOn(pg.Client.prototype, 'query');
    await graphqlOnce(
      gateway,
      alice.token,
      '{ dttSessionStats(by: [MONTH, TEMPLATE, SEGMENT_TYPE], fill: true) { total { sessionCount totalPoints } groups { template { name } sessionCount totalPoints } } }',
    );
    const statements = spy.mock.calls.map(([call]) => (call as unknown as { text?: string }).text ?? '');
    spy.mockRestore();
    expect(statements.filter((text) => /^(WITH|SELECT)/.test(text) && !text.includes('"ApiToken"'))).toEqual([
      expect.stringMatching(/^WITH counted/),
      expect.stringContaining('FROM "DttTemplate"'),
    ]);
  });
});

describe('statistics of lock sessions', () => {
  it('have durations, by state, template and week', async () => {
    const figures =
      'sessionCount activeSessionCount segmentCount totalDurationSeconds averageDurationSeconds';
    const { lockSessionStats } = await ask(
      `{ lockSessionStats(by: [STATE, TEMPLATE, WEEK], where: { startedAt: { gte: "2025-12-31T00:00:00Z" } }) {
        total { ${figures} lastSessionAt } groups { lockState template { databaseId } templateId period { date } ${figures} } } }`,
    );
    const one = {
      sessionCount: 1,
      segmentCount: 2,
      totalDurationSeconds: 3600,
      averageDurationSeconds: 3600,
      period: { date: '2025-12-29' },
    };
    const [first, second] = alice.lockTemplates;
    expect(lockSessionStats).toEqual({
      total: {
        sessionCount: 2,
        activeSessionCount: 1,
        segmentCount: 4,
        totalDurationSeconds: 7200,
        averageDurationSeconds: 3600,
        lastSessionAt: '2026-01-01T00:30:00.000Z',
      },
      groups: [
        {
          ...one,
          activeSessionCount: 1,
          lockState: 'locked',
          templateId: first,
          template: { databaseId: first },
        },
        {
          ...one,
          activeSessionCount: 0,
          lockState: 'completed',
          templateId: second,
          template: { databaseId: second },
        },
      ],
    });
  });
});

describe('a request for statistics', () => {
  const tooMany = /^There are more than 366 groups: ask for up to 1000 in maxGroups, for longer periods/;
  it.each([
    ['by: [DAY, MONTH]', 'by', 'by takes one of DAY, WEEK and MONTH, and not several'],
    ['by: [TEMPLATE], fill: true', 'fill', 'fill needs DAY, WEEK or MONTH in by'],
    [
      'timeZone: "Europe/Berln"',
      'timeZone',
      'timeZone must be the name of a time zone, such as "Europe/Berlin" or "UTC", and is not "Europe/Berln"',
    ],
    ['timeZone: "+01:00"', 'timeZone', /and is not "\+01:00"$/],
    ['where: { createdAt: { gte: "1990-01-01T00:00:00Z" } }, by: [DAY], fill: true', 'maxGroups', tooMany],
    ['by: [TEMPLATE], maxGroups: 1', 'maxGroups', /^There are more than 1 groups/],
    ['maxGroups: 1001', 'maxGroups', 'maxGroups must be an integer from 1 to 1000'],
    // So many groups that they would fill the memory.
    [
      'where: { createdAt: { gte: "0001-01-01T00:00:00Z", lt: "9999-01-01T00:00:00Z" } }, by: [DAY, TEMPLATE, TRAINER, SEGMENT_TYPE], fill: true',
      'maxGroups',
      tooMany,
    ],
    ['where: { createdAt: { gte: null } }, by: [DAY], fill: true', 'where', /must not be null/],
  ])('is rejected with the reason: %s', async (given, argument, message) => {
    const { data, errors } = await graphqlOnEveryPath(
      gateway,
      alice.token,
      `{ dttSessionStats(${given}) { groups { sessionCount } } }`,
    );
    expect(data).toEqual({ dttSessionStats: null });
    expect(errors).toEqual([
      expect.objectContaining({
        message: expect.stringMatching(message),
        extensions: { code: 'BAD_USER_INPUT', argument },
      }),
    ]);
  });

  it('is rejected when the database does not know its time zone', async () => {
    const { pool } = gateway.database;
    const spy = vi.spyOn(pool, 'query').mockImplementation(() => {
      throw Object.assign(new pg.DatabaseError('time zone not recognized', 0, 'error'), { code: '22023' });
    });
    const query = '{ dttSessionStats(by: [DAY], timeZone: "Asia/Kathmandu") { groups { sessionCount } } }';
    const { errors } = await graphqlOnce(gateway, alice.token, query).finally(() => spy.mockRestore());
    expect(errors).toEqual([
      expect.objectContaining({
        message: expect.stringMatching(/and the database of this gateway does not know "Asia\/Kathmandu"$/),
        extensions: { code: 'BAD_USER_INPUT', argument: 'timeZone' },
      }),
    ]);
  });
});

it('the database has the same UTC offsets as JavaScript for every time zone that is accepted', async () => {
  const summerAndWinter = [Date.UTC(2020, 0, 15, 12), Date.UTC(2020, 6, 15, 12)];
  const { rows } = await gateway.database.pool.query(
    `SELECT name, extract(epoch FROM to_timestamp(time / 1000.0) AT TIME ZONE name) * 1000 - time AS ahead, time
     FROM pg_timezone_names, unnest($1::float8[]) time`,
    [summerAndWinter],
  );
  let compared = 0;
  for (const { name, ahead, time } of rows) {
    try {
      readTimeZone(name);
    } catch {
      continue;
    }
    compared++;
    const format = new Intl.DateTimeFormat('sv', { timeZone: name, dateStyle: 'short', timeStyle: 'medium' });
    expect([name, Date.parse(`${format.format(time)}Z`) - time]).toEqual([name, Number(ahead)]);
  }
  expect(compared).toBeGreaterThan(800);
});
