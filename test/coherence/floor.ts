/** The lower bounds of reads, for rows that count their own changes, and the check of reads against them. */

import type pg from 'pg';

/** A row that counts its changes, by its table and id. */
export type Register = string;

export type Counts = readonly (readonly [Register, number])[];

export interface Activation {
  readonly userId: number;
  readonly templateId: number;
  /** The highest count of the user that was known when the activation was requested: its own is higher. */
  readonly after: number;
}

/** The lower bound of a read that begins now: its response must not show an older state. */
export class Floor {
  readonly counts = new Map<Register, number>();
  /** Acknowledged activations whose counts are not known yet. */
  readonly activations: Activation[] = [];

  raise(counts: Counts): void {
    for (const [register, count] of counts)
      if (count > (this.counts.get(register) ?? 0)) this.counts.set(register, count);
  }
  raiseTo(other: Floor): void {
    this.raise([...other.counts]);
    this.activations.push(...other.activations);
  }
  copy(): Floor {
    const copy = new Floor();
    copy.raiseTo(this);
    return copy;
  }
}

/** The state that a response shows. */
export interface Sight {
  counts: Counts;
  /** The id of the active template, 0 for none. */
  active?: number;
}

export interface Seen extends Sight {
  readonly what: string;
  readonly userId: number;
  readonly floor: Floor;
}

interface Version {
  readonly register: Register;
  readonly version: number;
  /** The id of the active template. */
  readonly value: number;
}

/** A message for each read that showed something older than its lower bound, by the whole history. */
export async function findStale(pool: pg.Pool, seen: readonly Seen[]): Promise<string[]> {
  const { rows } = await pool.query<Version>(
    'SELECT register, version, value FROM public.history ORDER BY version',
  );
  const histories = new Map<Register, Version[]>();
  for (const row of rows) histories.set(row.register, [...(histories.get(row.register) ?? []), row]);
  const stale: string[] = [];
  for (const { what, userId, counts, active, floor } of seen) {
    for (const activation of floor.activations) {
      const register = `User ${activation.userId}`;
      const own = histories
        .get(register)
        ?.find(({ version, value }) => version > activation.after && value === activation.templateId);
      if (own) floor.raise([[register, own.version]]);
    }
    for (const [register, count] of counts) {
      const least = floor.counts.get(register) ?? 0;
      if (count < least) stale.push(`${what} saw ${count} of ${register}, ${least} was known`);
    }
    if (active === undefined) continue;
    const register = `User ${userId}`;
    const least = floor.counts.get(register) ?? 0;
    const held = histories.get(register)?.some(({ version, value }) => version >= least && value === active);
    if (least > 0 && !held) stale.push(`${what} saw ${active} of ${register}, as it was not since ${least}`);
  }
  return stale;
}
