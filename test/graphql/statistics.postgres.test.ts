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

  it('have no empty groups when the filter has one bound and matches no session', async () => {
    const query = `query Stats($where: DttSessionFilter, $by: [DttSessionStatsKey!]) {
      dttSessionStats(where: $where, by: $by, fill: true) { total { sessionCount } groups { sessionCount } } }`;
    for (const by of ['DAY', 'MONTH'])
      for (const createdAt of [{ gte: '2030-01-01T00:00:00Z' }, { lt: '1990-01-01T00:00:00Z' }])
        expect(await ask(query, { by, where: { createdAt } })).toEqual({
          dttSessionStats: { total: { sessionCount: 0 }, groups: [] },
        });
  });

  it.each([
    ['gt', 'lt', '2018-11-02T23:59:59.999Z', '2018-11-05T00:00:00.000Z', ['2018-11-03', '2018-11-04']],
    ['gte', 'lte', '2018-11-03T00:00:00.000Z', '2018-11-04T23:59:59.999Z', ['2018-11-03', '2018-11-04']],
    ['gt', 'lte', '2018-11-03T23:59:59.998Z', '2018-11-04T00:00:00.000Z', ['2018-11-03', '2018-11-04']],
  ])('have empty groups from the first to the last day that %s and %s admit: %s to %s', async (...given) => {
    const [low, high, from, to, dates] = given;
    const { dttSessionStats } = await ask(
      `query Stats($where: DttSessionFilter) {
        dttSessionStats(where: $where, by: [DAY], fill: true) { groups { period { date } } } }`,
      { where: { createdAt: { [low]: from, [high]: to } } },
    );
    expect(dttSessionStats.groups).toEqual(dates.map((date) => ({ period: { date } })));
  });

  it('have empty groups between the bounds of a filter that matches no session', async () => {
    const { dttSessionStats } = await ask(
      `query Stats($where: DttSessionFilter) {
        dttSessionStats(where: $where, by: [DAY], timeZone: "America/Sao_Paulo", fill: true) { total { sessionCount firstSessionAt } groups { period { date from to } sessionCount totalPoints firstSessionAt } } }`,
      { where: { createdAt: { gte: '2018-11-02T12:00:00Z', lt: '2018-11-06T02:00:00Z' } } },
    );
    const nothing = { sessionCount: 0, firstSessionAt: null };
    // On November 4, clocks were set from midnight to one o'clock.
    const edges = ['02T03', '03T03', '04T03', '05T02', '06T02'].map((edge) => `2018-11-${edge}:00:00.000Z`);
    expect(dttSessionStats).toEqual({
      total: nothing,
      groups: edges.slice(0, -1).map((from, index) => ({
        ...nothing,
        totalPoints: null,
        period: { date: from.slice(0, 10), from, to: edges[index + 1] },
      })),
    });
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
    ['timeZone: "CET"', 'timeZone', /and is not "CET"$/],
    ['timeZone: "+01:00"', 'timeZone', /and is not "\+01:00"$/],
    ['timeZone: ""', 'timeZone', /and is not ""$/],
    ['where: { createdAt: { gte: "1990-01-01T00:00:00Z" } }, by: [DAY], fill: true', 'maxGroups', tooMany],
    [
      'where: { createdAt: { gte: "1990-01-01T00:00:00Z" } }, by: [DAY], fill: true, maxGroups: 1000',
      'maxGroups',
      /^There are more than 1000 groups: ask for longer/,
    ],
    ['by: [TEMPLATE], maxGroups: 1', 'maxGroups', /^There are more than 1 groups/],
    ['maxGroups: 0', 'maxGroups', 'maxGroups must be an integer from 1 to 1000'],
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

  it('has a complexity for as many groups as maxGroups allows, in the document or in a variable', async () => {
    const beneath = 'groups { template { sessions(first: 20) { nodes { databaseId } } } }';
    const given = `query Many($most: Int) { dttSessionStats(by: [TEMPLATE], maxGroups: $most) { ${beneath} } }`;
    const written = `{ dttSessionStats(by: [TEMPLATE], maxGroups: 900) { ${beneath} } }`;
    for (const [query, variables] of [
      [given, { most: 900 }],
      [written, {}],
    ] as const) {
      const { errors } = await graphqlOnce(gateway, alice.token, query, variables);
      expect(errors?.map(({ message }) => message)).toEqual([
        expect.stringMatching(/^The operation has a complexity of 2\d{4};/),
      ]);
    }
    for (const variables of [{ most: 300 }, { most: null }, {}])
      expect((await graphqlOnce(gateway, alice.token, given, variables)).errors).toBeUndefined();
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
