/**
 * The course of a lock session: its events as stretches of time. An event says whether the device is locked from then on, so
 * its stretch lasts until the next event, and that of the last event until the end of the session.
 */

export type StretchKind = 'locked' | 'break' | 'open' | 'ahead' | 'unknown';

export interface Stretch {
  /** The id of the event that began the stretch, or a word if no event did. */
  readonly key: string;
  readonly kind: StretchKind;
  /** In milliseconds since 1970, as all times here. */
  readonly from: number;
  readonly to: number;
}

export interface Course {
  readonly from: number;
  readonly to: number;
  /** In order of time. None is empty. */
  readonly stretches: readonly Stretch[];
}

export interface LockHistory {
  readonly startedAt: string;
  readonly endsAt?: string | null | undefined;
  readonly durationSeconds: number;
  readonly isActive: boolean;
  readonly segments: readonly {
    readonly id: string;
    readonly createdAt: string;
    readonly isLocked: boolean;
    readonly type: string;
  }[];
}

/**
 * @param now the current time: of an active session, what comes after it is shown as ahead.
 * @returns undefined if there is nothing to draw, since the device was never locked, or no event has a valid time.
 */
export function courseOf(session: LockHistory, now: number): Course | undefined {
  const events = session.segments
    .map(({ id, createdAt, isLocked, type }) => ({
      key: id,
      kind: kindOf(isLocked, type),
      from: Date.parse(createdAt),
    }))
    .filter(({ from }) => Number.isFinite(from));
  const [first] = events;
  const last = events.at(-1);
  if (!first || !last || !(session.isActive || events.some(({ kind }) => kind === 'locked')))
    return undefined;

  const started = Date.parse(session.startedAt);
  const end = endOf(session, last.from, now);
  const course: Stretch[] = events.map((event, place) => ({
    ...event,
    to: events[place + 1]?.from ?? end.known,
  }));
  if (started < first.from) course.unshift({ key: 'before', kind: 'unknown', from: started, to: first.from });
  course.push({ key: 'after', kind: end.thenKind, from: end.known, to: end.shown });
  const stretches = course.filter(({ from, to }) => from < to);
  return { from: started < first.from ? started : first.from, to: end.shown, stretches };
}

function kindOf(isLocked: boolean, type: string): StretchKind {
  if (isLocked) return 'locked';
  return type === 'break' ? 'break' : 'open';
}

/** Until when the last event is known to hold (`known`), where the course ends (`shown`), and what lies between the two. */
function endOf({ startedAt, endsAt, durationSeconds, isActive }: LockHistory, last: number, now: number) {
  const due = endsAt == null ? Number.NaN : Date.parse(endsAt);
  if (isActive) {
    const known = Math.max(now, last);
    return { known, shown: due > known ? due : known, thenKind: 'ahead' as const };
  }
  if (Number.isFinite(due)) {
    const known = Math.max(Math.min(due, now), last);
    return { known, shown: known, thenKind: 'unknown' as const };
  }
  // Its end is not recorded: the course goes on for as long as the session was meant to last.
  const plannedEnd = Date.parse(startedAt) + durationSeconds * 1_000;
  return { known: last, shown: plannedEnd > last ? plannedEnd : last, thenKind: 'unknown' as const };
}

/** The total duration of the stretches of a kind, in seconds, and their number. */
export function sumOf({ stretches }: Course, kind: StretchKind) {
  const ofKind = stretches.filter((stretch) => stretch.kind === kind);
  return {
    count: ofKind.length,
    seconds: ofKind.reduce((sum, { from, to }) => sum + (to - from) / 1_000, 0),
  };
}
