/** Statistics by plain code, with the time zones of `Intl`: the oracle for those that the database computes. */

export interface PlainSession {
  /** In milliseconds since the epoch. */
  readonly createdAt: number;
  readonly passed: boolean | null;
  readonly trainerId: number;
  readonly templateId: number | null;
  readonly segments: readonly PlainSegment[];
}

type Figure = 'percentGrade' | 'points' | 'durationMeasured' | 'repsMeasured' | 'distanceTravelled';

interface PlainSegment extends Readonly<Record<Figure, number | null>> {
  readonly type: string;
  readonly passed: boolean | null;
}

export type Key = 'DAY' | 'WEEK' | 'MONTH' | 'TEMPLATE' | 'TRAINER' | 'SEGMENT_TYPE';

export interface PlainQuery {
  readonly by: readonly Key[];
  readonly timeZone: string;
  readonly fill: boolean;
  /** The bounds of the filled periods; by default the first and the last session. */
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

/** The statistics in the form of the schema, without the records that groups link to. */
export function plainStatistics(sessions: readonly PlainSession[], query: PlainQuery) {
  const { by, timeZone, fill, from, to } = query;
  const unit = by.find((key) => key === 'DAY' || key === 'WEEK' || key === 'MONTH');
  const periodOf = (time: number) => unit && beginning(dateOf(time, timeZone), unit);
  const groups = new Map<string, { keys: Keys; sessions: PlainSession[] }>();
  const groupOf = (keys: Keys) => {
    const name = JSON.stringify(Object.values(keys));
    const group = groups.get(name) ?? { keys, sessions: [] };
    groups.set(name, group);
    return group;
  };
  for (const session of by.length > 0 ? sessions : []) {
    const types = by.includes('SEGMENT_TYPE') ? new Set(session.segments.map(({ type }) => type)) : [null];
    for (const type of types) {
      const segments =
        type === null ? session.segments : session.segments.filter((each) => each.type === type);
      groupOf({
        date: periodOf(session.createdAt) ?? null,
        templateId: by.includes('TEMPLATE') ? session.templateId : null,
        trainerId: by.includes('TRAINER') ? session.trainerId : null,
        rawSegmentType: type,
      }).sessions.push({ ...session, segments });
    }
  }
  if (fill && unit) {
    const known = [...groups.values()].map(({ keys }) => keys);
    const dates = known.flatMap(({ date }) => date ?? []).toSorted();
    const first = from === undefined ? dates[0] : periodOf(from);
    const last = to === undefined ? dates.at(-1) : periodOf(to);
    const others =
      by.length > 1 ? known : [{ date: null, templateId: null, trainerId: null, rawSegmentType: null }];
    for (const date of first && last ? datesBetween(first, last, unit, timeZone) : [])
      for (const keys of others) groupOf({ ...keys, date });
  }
  return {
    total: figuresOf(sessions),
    groups: [...groups.values()]
      .toSorted((one, other) => compare(Object.values(one.keys), Object.values(other.keys)))
      .map(({ keys: { date, ...others }, sessions: its }) => ({
        period: date && unit && periodFrom(date, unit, timeZone),
        ...others,
        segmentType: segmentTypeOf(others.rawSegmentType),
        ...figuresOf(its),
      })),
  };
}

/** In the order in which groups are sorted. */
interface Keys {
  readonly date: string | null;
  readonly templateId: number | null;
  readonly trainerId: number | null;
  readonly rawSegmentType: string | null;
}

const segmentTypeOf = (raw: string | null) =>
  raw && (/^(repetition|endurance|freeform|bounce)$/.test(raw) ? raw.toUpperCase() : 'UNKNOWN');

/** Null is last. */
function compare(one: readonly unknown[], other: readonly unknown[]): number {
  for (const [index, a] of one.entries()) {
    const b = other[index];
    if (a === b) continue;
    if (a === null || b === null) return a === null ? 1 : -1;
    return typeof a === 'number'
      ? a - Number(b)
      : Buffer.compare(Buffer.from(String(a)), Buffer.from(String(b)));
  }
  return 0;
}

function figuresOf(sessions: readonly PlainSession[]) {
  const segments = sessions.flatMap((session) => session.segments);
  const times = sessions.map(({ createdAt }) => createdAt).filter(Number.isFinite);
  const values = (name: Figure) => segments.flatMap((segment) => segment[name] ?? []);
  const timeText = (time: number | undefined) =>
    time === undefined ? null : new Date(Math.min(Math.max(time, earliest), latest)).toISOString();
  return {
    sessionCount: sessions.length,
    passedSessionCount: sessions.filter(({ passed }) => passed === true).length,
    failedSessionCount: sessions.filter(({ passed }) => passed === false).length,
    firstSessionAt: timeText(times.toSorted((a, b) => a - b)[0]),
    lastSessionAt: timeText(times.toSorted((a, b) => b - a)[0]),
    segmentCount: segments.length,
    passedSegmentCount: segments.filter(({ passed }) => passed === true).length,
    failedSegmentCount: segments.filter(({ passed }) => passed === false).length,
    averageGradePercent: mean(values('percentGrade')),
    averagePoints: mean(values('points')),
    totalPoints: sum(values('points')),
    totalRepsMeasured: sum(values('repsMeasured')),
    totalDurationMeasuredSeconds: sum(values('durationMeasured')),
    totalDistanceTravelledMetres: sum(values('distanceTravelled')),
  };
}

const rounded = (value: number) => Number(value.toPrecision(12));
const sum = (values: readonly number[]) =>
  values.length === 0 ? null : rounded(values.reduce((a, b) => a + b));
const mean = (values: readonly number[]) =>
  values.length === 0 ? null : rounded(values.reduce((a, b) => a + b) / values.length);

// Calendars and clocks.

const formats = new Map<string, Intl.DateTimeFormat>();

/** The times that a DateTime can hold. */
const [earliest, latest] = [Date.parse('0001-01-01T00:00:00.000Z'), Date.parse('9999-12-31T23:59:59.999Z')];

/** The date of an instant in a time zone; null if the instant is infinite or outside of the years 1 to 9999. */
function dateOf(time: number, timeZone: string): string | null {
  if (time < earliest || time > latest) return null;
  let format = formats.get(timeZone);
  if (!format) {
    format = new Intl.DateTimeFormat('en-CA', {
      timeZone,
      year: 'numeric',
      month: '2-digit',
      day: '2-digit',
    });
    formats.set(timeZone, format);
  }
  return format.format(time);
}

const atMidnight = (date: string) => new Date(`${date}T00:00Z`);
const written = (date: Date) => date.toISOString().slice(0, 10);

/** The first date of the period that a date belongs to. */
function beginning(date: string | null, unit: string): string | null {
  if (date === null) return null;
  if (unit === 'MONTH') return `${date.slice(0, 7)}-01`;
  const day = atMidnight(date);
  if (unit === 'WEEK') day.setUTCDate(day.getUTCDate() - ((day.getUTCDay() + 6) % 7));
  return written(day);
}

function next(date: string, unit: string): string {
  const day = atMidnight(date);
  if (unit === 'MONTH') day.setUTCMonth(day.getUTCMonth() + 1);
  else day.setUTCDate(day.getUTCDate() + (unit === 'WEEK' ? 7 : 1));
  return written(day);
}

function datesBetween(first: string, last: string, unit: string, timeZone: string): string[] {
  const dates: string[] = [];
  for (let date = first; date <= last; date = next(date, unit))
    if (unit !== 'DAY' || dateOf(instantOf(date, timeZone), timeZone) === date) dates.push(date);
  return dates;
}

const periodFrom = (date: string, unit: string, timeZone: string) => ({
  date,
  from: new Date(instantOf(date, timeZone)).toISOString(),
  to: new Date(instantOf(next(date, unit), timeZone)).toISOString(),
});

const known = new Map<string, number>();
const minute = 60_000;

/** The first minute with this date, or a later one, in the time zone, found by a binary search. */
function instantOf(date: string, timeZone: string): number {
  const key = `${timeZone} ${date}`;
  const found = known.get(key);
  if (found !== undefined) return found;
  const hasCome = (time: number) => (dateOf(time, timeZone) ?? '') >= date;
  let before = atMidnight(date).getTime() - 16 * 60 * minute;
  let time = before + 32 * 60 * minute;
  while (time - before > minute) {
    const middle = before + Math.floor((time - before) / (2 * minute)) * minute;
    if (hasCome(middle)) time = middle;
    else before = middle;
  }
  known.set(key, time);
  return time;
}
