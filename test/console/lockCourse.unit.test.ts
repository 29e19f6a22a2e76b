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

const seen = (session: LockHistory, now = 100) =>
  courseOf(session, start + now * hour)?.stretches.map(({ kind, from, to }) => [
    kind,
    (from - start) / hour,
    (to - start) / hour,
  ]);

const whole = [
  [0, 'start'],
  [4, 'break'],
  [5, 'lock'],
] as const;

describe('the course of a lock session', () => {
  it('extends each event until the next one, and the last until the end of the session', () => {
    expect(seen(history(whole))).toEqual([
      ['locked', 0, 4],
      ['break', 4, 5],
      ['locked', 5, 10],
    ]);
  });

  it('shows the remaining time of an active session as ahead', () => {
    expect(seen(history(whole, { isActive: true }), 7)).toEqual([
      ['locked', 0, 4],
      ['break', 4, 5],
      ['locked', 5, 7],
      ['ahead', 7, 10],
    ]);
  });

  it('extends to the present when an active session should have ended already, or has no known end', () => {
    for (const endsAt of [at(6), null, 'infinity'])
      expect(seen(history(whole, { isActive: true, endsAt }), 7)?.at(-1)).toEqual(['locked', 5, 7]);
  });

  it('shows events that are later than the clock of the browser, when this is slow', () => {
    expect(seen(history(whole, { isActive: true }), 3)).toEqual([
      ['locked', 0, 4],
      ['break', 4, 5],
      ['ahead', 5, 10],
    ]);
  });

  it('shows the time after the last event of a session without a known end as unknown', () => {
    expect(seen(history([...whole, [6, 'break']], { endsAt: null }))).toEqual([
      ['locked', 0, 4],
      ['break', 4, 5],
      ['locked', 5, 6],
      ['unknown', 6, 10],
    ]);
  });

  it('omits events of zero length, and extends to an event after the end', () => {
    const course = (end: number) =>
      seen(
        history([
          [0, 'start'],
          [end, 'end'],
        ]),
      );
    expect([course(10), course(12)]).toEqual([[['locked', 0, 10]], [['locked', 0, 12]]]);
  });

  it('begins with an event before the start, and shows the time between the start and a later first event as unknown', () => {
    expect(
      seen(
        history([
          [-1, 'created'],
          [2, 'start'],
        ]),
      )?.[0],
    ).toEqual(['open', -1, 2]);
    expect(seen(history([[2, 'start']]))).toEqual([
      ['unknown', 0, 2],
      ['locked', 2, 10],
    ]);
  });

  it('is undefined when the device was never locked', () => {
    expect(seen(history([]))).toBeUndefined();
    expect(seen(history([[0, 'created']]))).toBeUndefined();
    expect(seen(history([], { isActive: true }))).toBeUndefined();
  });

  it('ignores times that are not representable as a date', () => {
    const session = history(whole, { startedAt: '-infinity' });
    const [first] = session.segments;
    const odd = first ? { ...first, id: 'odd', createdAt: 'infinity' } : [];
    expect(seen({ ...session, segments: [...session.segments, odd].flat() })).toEqual(seen(history(whole)));
  });

  it('counts and sums the stretches of each kind', () => {
    const course = courseOf(history(whole), start + 100 * hour);
    expect(course && sumOf(course, 'locked')).toEqual({ count: 2, seconds: 9 * 3_600 });
    expect(course && sumOf(course, 'break')).toEqual({ count: 1, seconds: 3_600 });
    expect(course && sumOf(course, 'open')).toEqual({ count: 0, seconds: 0 });
  });
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

  it('are at round local times on every day of a year, also when the clocks change', () => {
    for (let day = 1; day <= 365; day++)
      for (const [, hours = 0, minutes] of shown(local(day), local(day + 1), 4)) {
        // Where the clocks go forward at midnight, the day begins at one.
        expect(hours % 6).toBeLessThanOrEqual(1);
        expect(minutes).toBe(0);
      }
  });

  it('are none where there is no room or no valid range, and few up to the last representable date', () => {
    expect(marksBetween(local(1), local(2), 0)).toEqual([]);
    expect(marksBetween(local(1), Number.NaN, 4)).toEqual([]);
    expect(marksBetween(local(1), 8.64e15, 4).length).toBeLessThanOrEqual(5);
  });
});
