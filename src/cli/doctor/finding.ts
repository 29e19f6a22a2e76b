/** What a check is, what it finds, and how a list of checks is run. */

import { type Diagnosis, SetupError } from '../../errors.ts';

export interface Finding extends Partial<Pick<Diagnosis, 'advice'>> {
  readonly check: string;
  readonly state: 'ok' | 'problem';
  /** The state, or the problem. */
  readonly says: string;
}

/** The state, if all is well; or the problem, and what to do about it. Undefined where the check does not apply. */
export type Found = string | Pick<Finding, 'says' | 'advice'> | undefined;

/** The name of a check, and the check itself, which changes nothing. It throws the errors that a start would throw. */
export type Check<Subject> = readonly [
  name: string,
  find: (subject: Subject) => Found | Promise<Found>,
  /** Whether a problem here makes the checks after it pointless. */
  isVital?: boolean,
];

/** Runs checks one after the other, up to a vital one that finds a problem. */
export async function runChecks<Subject>(
  checks: readonly Check<Subject>[],
  subject: Subject,
): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const [check, find, isVital] of checks) {
    const found = await Promise.resolve(subject).then(find).catch(problemOf);
    if (found === undefined) continue;
    const isGood = typeof found === 'string';
    findings.push(isGood ? { check, state: 'ok', says: found } : { check, state: 'problem', ...found });
    if (isVital && !isGood) break;
  }
  return findings;
}

/** The problem, if the error is one with which a start fails. @throws any other error. */
export function problemOf(error: unknown): { says: string } {
  if (error instanceof SetupError) return { says: error.message };
  throw error;
}

/** How long, in milliseconds, a check waits for a database, a port or an upstream. */
export const timeout = 5_000;
