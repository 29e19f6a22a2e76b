/** What a check has found, and how it is written down. */

export interface Finding {
  readonly check: string;
  readonly state: 'ok' | 'problem' | 'skipped';
  /** How things are. */
  readonly says: string;
  /** What to do about a problem; or what would be better, where all is well. */
  readonly advice?: string;
}

/** What a check says. Whoever runs it adds its name. */
export type CheckResult = Omit<Finding, 'check'>;

export const ok = (says: string): CheckResult => ({ state: 'ok', says });
export const hint = (says: string, advice: string): CheckResult => ({ state: 'ok', says, advice });
export const problem = (says: string, advice: string): CheckResult => ({ state: 'problem', says, advice });
export const skipped = (says: string): CheckResult => ({ state: 'skipped', says });

/** How long, in milliseconds, a check waits for a database, a port or an upstream. */
export const timeout = 5_000;
