/**
 * The course of a lock session: the events of its history as stretches of time. An event says how things are from then on,
 * so it lasts until the next one, and the last one until the session ends.
 */

export type StretchKind = 'locked' | 'break' | 'open' | 'ahead' | 'unknown';

export interface Stretch {
  /** The id of the event that it began with, or what it is otherwise. */
  readonly key: string;
  readonly kind: StretchKind;
  /** In milliseconds since 1970, as all times here. */
  readonly from: number;
  readonly to: number;
}

export interface Course {
  readonly from: number;
  readonly to: number;
  /** One after the other, each longer than nothing. */
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
 * @param now of an active session, everything behind it is yet to come.
 * @returns undefined where nothing is to be seen: the device was never locked, or when is not known.
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

/** Until when it is known how things were, and what is to be shown of the time behind. */
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
  // Nobody said when it ended: its duration shows how long it was meant to be.
  const meant = Date.parse(startedAt) + durationSeconds * 1_000;
  return { known: last, shown: meant > last ? meant : last, thenKind: 'unknown' as const };
}

/** How long the stretches of a kind are together, in seconds, and how many there are. */
export function sumOf({ stretches }: Course, kind: StretchKind) {
  const those = stretches.filter((stretch) => stretch.kind === kind);
  return {
    count: those.length,
    seconds: those.reduce((sum, { from, to }) => sum + (to - from) / 1_000, 0),
  };
}
