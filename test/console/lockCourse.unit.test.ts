import { describe, expect, it } from 'vitest';
import { courseOf, type LockHistory, sumOf } from '../../console/src/locks/course.ts';
import { marksBetween } from '../../console/src/locks/scale.ts';

const hour = 3_600_000;
const start = Date.parse('2026-03-01T12:00:00.000Z');
const at = (hours: number) => new Date(start + hours * hour).toISOString();

/** @param events the hour at which each happened, and its type; `start` and `lock` lock the device. */
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
  it('lets each event last until the next one, and the last until the end', () => {
    expect(seen(history(whole))).toEqual([
      ['locked', 0, 4],
      ['break', 4, 5],
      ['locked', 5, 10],
    ]);
  });

  it('shows of an active session what is yet to come', () => {
    expect(seen(history(whole, { isActive: true }), 7)).toEqual([
      ['locked', 0, 4],
      ['break', 4, 5],
      ['locked', 5, 7],
      ['ahead', 7, 10],
    ]);
  });

  it('goes on until now where an active session should have ended, or nobody said when it does', () => {
    for (const endsAt of [at(6), null, 'infinity'])
      expect(seen(history(whole, { isActive: true, endsAt }), 7)?.at(-1)).toEqual(['locked', 5, 7]);
  });

  it('shows all that happened where the clock of the browser is behind', () => {
    expect(seen(history(whole, { isActive: true }), 3)).toEqual([
      ['locked', 0, 4],
      ['break', 4, 5],
      ['ahead', 5, 10],
    ]);
  });

  it('shows of a session that is over nothing that is yet to come', () => {
    expect(seen(history(whole), 7)?.at(-1)).toEqual(['locked', 5, 7]);
  });

  it('does not claim to know what was after the last event of a session whose end is not known', () => {
    expect(seen(history([...whole, [6, 'break']], { endsAt: null }))).toEqual([
      ['locked', 0, 4],
      ['break', 4, 5],
      ['locked', 5, 6],
      ['unknown', 6, 10],
    ]);
  });

  it('tells a break from another time in which the device is open', () => {
    expect(seen(history([...whole, [8, 'unlock']]))?.at(-1)).toEqual(['open', 8, 10]);
  });

  it('leaves out events that last no time, and shows those after the end', () => {
    expect(
      seen(
        history([
          [0, 'start'],
          [10, 'end'],
        ]),
      ),
    ).toEqual([['locked', 0, 10]]);
    expect(
      seen(
        history([
          [0, 'start'],
          [12, 'end'],
        ]),
      ),
    ).toEqual([['locked', 0, 12]]);
  });

  it('begins with the first event where that was before the start, and does not know what was between', () => {
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

  it('is not there where nothing was locked', () => {
    expect(seen(history([]))).toBeUndefined();
    expect(seen(history([[0, 'created']]))).toBeUndefined();
    expect(seen(history([], { isActive: true }))).toBeUndefined();
  });

  it('passes over times that no date can be', () => {
    const session = history(whole, { startedAt: '-infinity' });
    const [first] = session.segments;
    const odd = first ? { ...first, id: 'odd', createdAt: 'infinity' } : [];
    expect(seen({ ...session, segments: [...session.segments, odd].flat() })).toEqual(seen(history(whole)));
  });

  it('sums what is of a kind', () => {
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

  it('are at round times of the clocks of the place', () => {
    expect(shown(local(3, 1), local(3, 4), 3)).toEqual([
      [3, 1, 0],
      [3, 2, 0],
      [3, 3, 0],
      [3, 4, 0],
    ]);
    expect(shown(local(3, 7), local(5, 7), 4)).toEqual([
      [3, 12, 0],
      [4, 0, 0],
      [4, 12, 0],
      [5, 0, 0],
    ]);
    expect(shown(local(3, 7), local(20, 7), 4)).toEqual([
      [8, 0, 0],
      [13, 0, 0],
      [18, 0, 0],
    ]);
  });

  it('stay at round times on every day of a year, whatever is done to the clocks', () => {
    for (let day = 1; day <= 365; day++)
      for (const [, hours = 0, minutes] of shown(local(day), local(day + 1), 4)) {
        // Where clocks are changed at midnight, the day begins at one.
        expect(hours % 6).toBeLessThanOrEqual(1);
        expect(minutes).toBe(0);
      }
  });

  it('are none where there is no room, and end where no date can be', () => {
    expect(marksBetween(local(1), local(2), 0)).toEqual([]);
    expect(marksBetween(local(1), Number.NaN, 4)).toEqual([]);
    expect(marksBetween(local(1), 8.64e15, 4).length).toBeLessThanOrEqual(5);
  });
});
