/**
 * Compares statistics of random sessions around changes of the clocks with a plain computation.
 *
 * `SEED=…` repeats a run, and `FUZZ_MINUTES=…` runs for the given time.
 */

import fc from 'fast-check';
import { execute, parse } from 'graphql';
import { describe, expect, it } from 'vitest';
import { createSql } from '../../../src/database/reader/sql.ts';
import { createContext } from '../../../src/schema/context.ts';
import { schema } from '../../../src/schema/schema.ts';
import { databaseWith } from '../../support/setUp.ts';
import { type PlainQuery, type PlainSession, plainStatistics } from '../../support/statistics.ts';

const seed = Number(process.env.SEED ?? Date.now() % 2 ** 31);
const minutes = Number(process.env.FUZZ_MINUTES ?? 0);

/** Time zones, each with dates on which the clocks change. */
const changes: readonly [timeZone: string, ...days: string[]][] = [
  ['Europe/Berlin', '2026-03-29', '2026-10-25'],
  // The clocks change at midnight.
  ['America/Sao_Paulo', '2018-02-18', '2018-11-04'],
  // The change is half an hour.
  ['Australia/Lord_Howe', '2026-04-05', '2026-10-04'],
  // The clocks go back from one o'clock to midnight.
  ['America/Havana', '2026-03-08', '2026-11-01'],
  ['America/St_Johns', '2026-03-08', '2026-11-01'],
  // The only change was a quarter of an hour.
  ['Asia/Kathmandu', '1986-01-01'],
  // The change was a day, which was skipped.
  ['Pacific/Apia', '2011-12-30'],
  ['UTC', '2026-01-01'],
];

const { database } = await databaseWith();
const sql = createSql(database.pool);
// A mirror may have other types of segments.
await database.client.mirror.create({ data: { source: 'https://example.com' } });
// The databases of the tests order text by code points. Others do not. Triggers on the column prevent ALTER TYPE.
await database.pool.query(`UPDATE pg_attribute SET attcollation = '"und-x-icu"'::regcollation
  WHERE attrelid = '"TrainerSegment"'::regclass AND attname = 'type'`);

const mostly = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { freq: 4, nil: null });
/** Binary fractions, whose sum is the same in any order. */
const quarters = (most: number) => fc.integer({ min: 0, max: most * 4 }).map((value) => value / 4);

const segment = fc.record({
  type: fc.constantFrom('repetition', 'endurance', 'freeform', 'bounce', 'Zumba', 'é'),
  passed: mostly(fc.boolean()),
  percentGrade: mostly(quarters(100)),
  points: mostly(fc.integer({ min: -5, max: 2 ** 31 - 1 })),
  durationMeasured: mostly(fc.nat(2 ** 31 - 1)),
  repsMeasured: mostly(fc.nat(100)),
  distanceTravelled: mostly(quarters(1_000)),
});

const hour = 3_600_000;

/** Times without a date that a LocalDate can hold: before the year 1, after the year 9999, and infinite. */
const undated = [
  Date.parse('-000043-03-15T12:00:00.000Z'),
  Date.parse('+012026-05-05T12:00:00.000Z'),
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
];

const scene = fc
  .tuple(fc.constantFrom(...changes), fc.nat(), fc.constantFrom(30, 24 * 20, 24 * 150))
  .chain(([[timeZone, ...days], index, hours]) => {
    const centre = Date.parse(days[index % days.length] ?? '');
    const time = fc.integer({ min: centre - hours * hour, max: centre + hours * hour });
    const session: fc.Arbitrary<PlainSession> = fc.record({
      createdAt: fc.oneof({ weight: 10, arbitrary: time }, fc.constantFrom(...undated)),
      passed: mostly(fc.boolean()),
      trainerId: fc.integer({ min: 1, max: 3 }),
      templateId: mostly(fc.integer({ min: 1, max: 3 })),
      segments: fc.array(segment, { maxLength: 4 }),
    });
    const period = fc.constantFrom(['DAY'], ['WEEK'], ['MONTH'], []);
    const others = fc.oneof(
      fc.constantFrom([], ['TEMPLATE'], ['TRAINER']),
      fc.subarray(['TEMPLATE', 'TRAINER', 'SEGMENT_TYPE']),
    );
    const query = fc.record({ period, others, isFilled: fc.boolean(), isReversed: fc.boolean() }).map(
      // The strings are the names of keys.
      ({ period, others, isFilled, isReversed }) =>
        ({
          by: isReversed ? [...others, ...period] : [...period, ...others],
          timeZone,
          fill: isFilled && period.length > 0,
        }) as PlainQuery,
    );
    // The bounds of the filter: the first is included, the second excluded.
    const bounds = fc.record({
      gte: fc.option(time, { freq: 1 }),
      lt: fc.option(time, { freq: 1 }),
      isNested: fc.boolean(),
    });
    return fc.record({ query, bounds, sessions: fc.array(session, { maxLength: 25 }) });
  });

/** Creates a user with these sessions, whose trainers and templates do not exist any more. @returns the user's id. */
async function write(sessions: readonly PlainSession[]): Promise<number> {
  const { rows } = await database.pool.query(
    `INSERT INTO "User" (username) SELECT 'user ' || count(*) + 1 FROM "User" RETURNING id`,
  );
  const owner = rows[0].id;
  const written = sessions.map((session, index) => ({
    ...session,
    number: index,
    createdAt: postgresTime(session.createdAt),
  }));
  await database.pool.query(
    `WITH given AS (SELECT * FROM json_to_recordset($2) AS s(number int, "createdAt" timestamptz, passed boolean, "trainerId" int, "templateId" int, segments json)),
      sessions AS (
        INSERT INTO "DttSession" ("bubbleId", "ownerId", "createdAt", passed, "goneTrainerId", "goneTemplateId")
        SELECT $1::int || '-' || number, $1::int, "createdAt", passed, "trainerId", "templateId" FROM given RETURNING id, "bubbleId"
      )
    INSERT INTO "TrainerSegment" ("sessionId", "order", type, passed, "percentGrade", points, "durationMeasured", "repsMeasured", "distanceTravelled")
    SELECT sessions.id, row_number() OVER (PARTITION BY sessions.id), p.type, p.passed, p."percentGrade", p.points, p."durationMeasured", p."repsMeasured", p."distanceTravelled"
    FROM given JOIN sessions ON "bubbleId" = $1::int || '-' || number, json_populate_recordset(NULL::"TrainerSegment", segments) p`,
    [owner, JSON.stringify(written)],
  );
  return owner;
}

/** A time in PostgreSQL's notation, which has no year 0 and no signs of years. */
function postgresTime(time: number): string {
  if (!Number.isFinite(time)) return String(time).toLowerCase();
  const text = new Date(time).toISOString();
  const [, sign, year, rest] = /^([+-]?)(\d+)(.*)$/.exec(text) ?? [];
  if (sign !== '-' && Number(year) > 0) return `${year}${rest}`;
  return `${String(Number(year) + 1).padStart(4, '0')}${rest} BC`;
}

const figures = `sessionCount passedSessionCount failedSessionCount firstSessionAt lastSessionAt segmentCount passedSegmentCount
  failedSegmentCount averageGradePercent averagePoints totalPoints totalRepsMeasured totalDurationMeasuredSeconds
  totalDistanceTravelledMetres`;
const document =
  parse(`query Stats($where: DttSessionFilter, $by: [DttSessionStatsKey!], $timeZone: String, $fill: Boolean, $maxGroups: Int) {
  dttSessionStats(where: $where, by: $by, timeZone: $timeZone, fill: $fill, maxGroups: $maxGroups) {
    total { ${figures} }
    groups { period { date from to } templateId trainerId segmentType rawSegmentType ${figures} }
  }
}`);

async function ask(id: number, variableValues: PlainQuery & { where?: object; maxGroups?: number }) {
  const contextValue = createContext(sql, { id } as never, undefined);
  const { data, errors } = await execute({
    schema,
    document,
    variableValues: { ...variableValues },
    contextValue,
  });
  // In the form that a client gets as JSON.
  return JSON.parse(JSON.stringify({ stats: data?.dttSessionStats, errors }));
}

it.each(changes.flatMap(([timeZone, ...days]) => days.map((day) => [timeZone, day] as const)))(
  'begins days, weeks and months correctly around the change of the clocks in %s on %s',
  async (timeZone, day) => {
    const owner = await write([]);
    const around = (days: number) => Date.parse(day) + days * 24 * hour;
    for (const unit of ['DAY', 'WEEK', 'MONTH'] as const) {
      const query = { by: [unit], timeZone, fill: true, from: around(-4), to: around(4) };
      const createdAt = { gte: new Date(query.from).toISOString(), lte: new Date(query.to).toISOString() };
      const { stats } = await ask(owner, { ...query, where: { createdAt } });
      expect(stats).toEqual(plainStatistics([], query));
    }
  },
);

const session = { passed: null, trainerId: 1, templateId: null, segments: [] };

const start = (day: number) => `2026-01-0${day}T00:00:00Z`;
const end = (day: number) => `2026-01-0${day}T23:59:59.999Z`;

it.each([
  [{ gte: start(1), gt: end(1), lte: start(4), lt: start(9) }, ['2026-01-02', '2026-01-03', '2026-01-04']],
  [{ gt: start(1), gte: end(2), lte: start(5), lt: start(4) }, ['2026-01-02', '2026-01-03']],
  [{ eq: '2026-01-02T12:00:00.000Z' }, ['2026-01-02']],
  // Without a session, only a filter with both ends has days.
  [{ gte: start(3) }, []],
  [{ lte: start(1) }, []],
  [undefined, ['2026-01-02']],
])('filled days reach to the first and the last millisecond that %j admits', async (createdAt, dates) => {
  const owner = await write([{ ...session, createdAt: Date.parse('2026-01-02T12:00:00.000Z') }]);
  for (const where of createdAt ? [{ createdAt }, { and: { createdAt } }] : [{}, undefined]) {
    const { stats } = await ask(owner, { by: ['DAY'], timeZone: 'UTC', fill: true, ...(where && { where }) });
    expect(stats.groups.map(({ period }: { period: { date: string } }) => period.date)).toEqual(dates);
  }
});

it('a day whose last hour comes again after its end counts the sessions of that hour', async () => {
  // At 00:01 of the 29th the clocks went back to 23:01 of the 28th.
  const times = ['02:29:59', '02:30:00', '02:31:00', '03:29:59', '03:30:00'];
  const owner = await write(
    times.map((time) => ({ ...session, createdAt: Date.parse(`2006-10-29T${time}.000Z`) })),
  );
  const { stats } = await ask(owner, { by: ['DAY'], timeZone: 'America/St_Johns', fill: false });
  const day = (date: string, from: string, to: string, sessionCount: number) => ({
    period: { date, from: `${from}.000Z`, to: `${to}.000Z` },
    sessionCount,
  });
  expect(stats.groups).toMatchObject([
    day('2006-10-28', '2006-10-28T02:30:00', '2006-10-29T02:30:00', 3),
    day('2006-10-29', '2006-10-29T02:30:00', '2006-10-30T03:30:00', 2),
  ]);
});

it('sums and averages are rounded to twelve digits, and leave out numbers whose sum is beyond all numbers', async () => {
  const measured = { type: 'bounce', passed: null, points: 1, durationMeasured: 1, repsMeasured: 1 };
  const parts = [0.1, 0.2, 0.3, 1e308, 1e308, 1e300].map((distanceTravelled, index) => ({
    ...measured,
    distanceTravelled,
    percentGrade: [1, 0, 0][index] ?? null,
  }));
  const owner = await write([{ ...session, createdAt: 0, segments: parts }]);
  const { stats } = await ask(owner, { by: [], timeZone: 'UTC', fill: false });
  // In binary, 0.1 and 0.2 and 0.3 are 0.6000000000000001.
  expect(stats.total).toMatchObject({
    totalDistanceTravelledMetres: 0.6,
    averageGradePercent: 0.333333333333,
  });
});

describe('a time outside of the years 1 to 9999, which LocalDate cannot represent', () => {
  const times = [
    ...undated,
    Date.parse('0001-01-01T00:00:00.000Z'),
    Date.parse('2026-05-05T12:00:00.000Z'),
    Date.parse('9999-12-31T23:59:59.999Z'),
    Date.parse('+010000-01-01T00:00:00.000Z'),
  ];
  const groupsOf = async (owner: number, query: Partial<PlainQuery> & { where?: object }) => {
    const { stats, errors } = await ask(owner, { by: ['DAY'], timeZone: 'UTC', fill: false, ...query });
    expect(errors).toBeUndefined();
    const groups: { period: { date: string } | null; sessionCount: number }[] = stats.groups;
    return Object.fromEntries(groups.map(({ period, sessionCount }) => [period?.date, sessionCount]));
  };

  it('is determined by the year in the time zone of the query', async () => {
    const owner = await write(times.map((createdAt) => ({ ...session, createdAt })));
    for (const [timeZone, groups] of [
      ['America/New_York', { '2026-05-05': 1, '9999-12-31': 2, undefined: 5 }],
      ['UTC', { '0001-01-01': 1, '2026-05-05': 1, '9999-12-31': 1, undefined: 5 }],
      ['Asia/Tokyo', { '0001-01-01': 1, '2026-05-05': 1, undefined: 6 }],
    ] as const)
      expect(await groupsOf(owner, { timeZone })).toEqual(groups);
  });

  it('as a bound of the filter adds no empty periods', async () => {
    const first = Date.parse('0001-03-05T12:00:00.000Z');
    const owner = await write([{ ...session, createdAt: first }]);
    const where = { createdAt: { gte: '0000-06-01T00:00:00Z', lt: '0001-06-01T00:00:00Z' } };
    const groups = { '0001-03-01': 1, '0001-04-01': 0, '0001-05-01': 0 };
    expect(await groupsOf(owner, { by: ['MONTH'], fill: true, where })).toEqual(groups);
  });

  it.each([
    ['-004699-01-01T00:00:00.000Z', null],
    ['-004699-01-01T00:00:00.001Z', '0001-01-01T00:00:00.000Z'],
    ['+269999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
    ['+270000-01-01T00:00:00.000Z', null],
  ])(
    'is shown if it has a date in every time zone, in PostgreSQL and in JavaScript: %s',
    async (time, shown) => {
      const owner = await write([{ ...session, createdAt: Date.parse(time) }]);
      const { stats } = await ask(owner, { by: [], timeZone: 'UTC', fill: false });
      expect(stats.total).toMatchObject({ sessionCount: 1, firstSessionAt: shown, lastSessionAt: shown });
    },
  );
});

it(
  'returns the same statistics as plain code for random time zones and keys, with and without filled gaps',
  async () => {
    let filled = 0;
    const property = fc.asyncProperty(scene, async ({ query, bounds: { gte, lt, isNested }, sessions }) => {
      const owner = await write(sessions);
      const text = (time: number | null) => (time === null ? undefined : new Date(time).toISOString());
      const createdAt = { gte: text(gte), lt: text(lt) };
      const where = isNested
        ? { and: [{ createdAt: { gte: createdAt.gte } }, { createdAt: { lt: createdAt.lt } }] }
        : { createdAt };
      const met = sessions.filter(
        ({ createdAt: time }) => (gte === null || time >= gte) && (lt === null || time < lt),
      );
      const expected = plainStatistics(met, {
        ...query,
        from: gte ?? undefined,
        to: lt === null ? undefined : lt - 1,
      });
      const most = expected.groups.length;
      if (most > 1) {
        const { errors } = await ask(owner, { ...query, where, maxGroups: Math.min(most - 1, 1_000) });
        expect(errors?.[0]?.extensions).toEqual({ code: 'BAD_USER_INPUT', argument: 'maxGroups' });
      }
      if (most > 1_000) return;
      const { stats, errors } = await ask(owner, { ...query, where, maxGroups: Math.max(most, 1) });
      if (query.by.length > 1)
        filled += expected.groups.filter(({ sessionCount }) => sessionCount === 0).length;
      expect(errors).toBeUndefined();
      expect(stats).toEqual(expected);
    });
    const time = minutes * 60_000;
    await fc.assert(property, {
      seed,
      ...(time > 0
        ? { numRuns: Number.POSITIVE_INFINITY, interruptAfterTimeLimit: time, markInterruptAsFailure: false }
        : { numRuns: 30 }),
    });
    // Repeats until gaps were filled beside other keys.
    for (let next = seed + 1; filled < 50; next++) await fc.assert(property, { seed: next, numRuns: 10 });
  },
  (minutes + 1) * 60_000,
);
