import { describe, expect, it } from 'vitest';
import { courseOf, type LockHistory, sumOf } from '../../console/src/locks/course.ts';
import { marksBetween } from '../../console/src/locks/scale.ts';

const hour = 3_600_000;
const start = Date.parse('2026-03-01T12:00:00.000Z');
const at = (hours: number) => new Date(start + hours * hour).toISOString();

/** @param events the hour of each event and its type; `start` and `lock` lock the device. */
function history(
  events: readonly (readonly [number, string])[],
  more: Partial<LockHistory> = {},
): LockHistory {
  return {
    startedAt: at(0),
    endsAt: at(10),
    durationSeconds: 36_000,
    isActive: false,
    segments: events.map(([hours, type], index) => ({
      id: `${index}`,
      createdAt: at(hours),
      type,
      isLocked: type === 'start' || type === 'lock',
    })),
    ...more,
  };
}

/** The stretches of a session in words, with the hours from and to. */
const seen = (session: LockHistory, now = 100) =>
  courseOf(session, start + now * hour)?.stretches.map(
    ({ kind, from, to }) => `${kind} ${(from - start) / hour} to ${(to - start) / hour}`,
  );

const whole = [
  [0, 'start'],
  [4, 'break'],
  [5, 'lock'],
] as const;
const until5 = ['locked 0 to 4', 'break 4 to 5'];
const active = history(whole, { isActive: true });

it.each<[string, LockHistory, number, string[] | undefined]>([
  ['extends the last event until the end', history(whole), 100, [...until5, 'locked 5 to 10']],
  ['shows the remaining time of an active session', active, 7, [...until5, 'locked 5 to 7', 'ahead 7 to 10']],
  ['shows events that are later than a slow clock', active, 3, [...until5, 'ahead 5 to 10']],
  ['extends until now without an end', { ...active, endsAt: null }, 7, [...until5, 'locked 5 to 7']],
  [
    'does not know the time after the last event without an end',
    history([...whole, [6, 'break']], { endsAt: null }),
    100,
    [...until5, 'locked 5 to 6', 'unknown 6 to 10'],
  ],
  [
    'distinguishes a break from other time in which the device is open',
    history([...whole, [8, 'unlock']]),
    100,
    [...until5, 'locked 5 to 8', 'open 8 to 10'],
  ],
  ['omits events of zero length', history([...whole.slice(0, 1), [10, 'end']]), 100, ['locked 0 to 10']],
  [
    'begins with an event before the start',
    history([
      [-1, 'new'],
      [2, 'start'],
    ]),
    100,
    ['open -1 to 2', 'locked 2 to 10'],
  ],
  ['is undefined when the device was never locked', history([[0, 'created']]), 100, undefined],
])('the course of a lock session %s', (_, session, now, stretches) => {
  expect(seen(session, now)).toEqual(stretches);
});

it('the course of a lock session ignores times that are not representable as a date', () => {
  const session = history(whole, { startedAt: '-infinity' });
  const [first] = session.segments;
  const odd = first ? { ...first, id: 'odd', createdAt: 'infinity' } : [];
  expect(seen({ ...session, segments: [...session.segments, odd].flat() })).toEqual(seen(history(whole)));
});

it('counts and sums the stretches of each kind', () => {
  const course = courseOf(history(whole), start + 100 * hour);
  expect(course && sumOf(course, 'locked')).toEqual({ count: 2, seconds: 9 * 3_600 });
  expect(course && sumOf(course, 'open')).toEqual({ count: 0, seconds: 0 });
});

describe('the marks of a scale', () => {
  const local = (day: number, hours = 0) => new Date(2026, 2, day, hours).getTime();
  const shown = (from: number, to: number, most: number) =>
    marksBetween(from, to, most).map((mark) => {
      const date = new Date(mark);
      return [date.getDate(), date.getHours(), date.getMinutes()];
    });

  it('are at round local times', () => {
    expect(shown(local(3, 7), local(5, 7), 4)).toEqual([
      [3, 12, 0],
      [4, 0, 0],
      [4, 12, 0],
      [5, 0, 0],
    ]);
  });

  it('are none where there is no room or no valid range, and few up to the last representable date', () => {
    expect(marksBetween(local(1), local(2), 0)).toEqual([]);
    expect(marksBetween(local(1), Number.NaN, 4)).toEqual([]);
    expect(marksBetween(local(1), 8.64e15, 4).length).toBeLessThanOrEqual(5);
  });
});
