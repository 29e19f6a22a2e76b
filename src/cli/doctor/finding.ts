/** What a check is, what it finds, and how a list of checks is run. */

import { type Diagnosis, SetupError } from '../../errors.ts';

export interface Finding extends Partial<Pick<Diagnosis, 'advice'>> {
  readonly check: string;
  readonly state: 'ok' | 'problem';
  /** How things are. */
  readonly says: string;
}

/** How things are if all is well, or a problem with what to do about it; undefined where the check does not apply. */
export type Found = string | Diagnosis | undefined;

/** A check of something, which may find several things. It changes nothing. */
export interface Check<Subject> {
  readonly name: string;
  readonly find: (subject: Subject) => Found | readonly Found[] | Promise<Found | readonly Found[]>;
  /** Whether the checks after this one tell nothing while it finds a problem. */
  readonly isVital?: boolean;
}

/** Runs checks one after the other, up to a vital one that finds a problem. */
export async function runChecks<Subject>(
  checks: readonly Check<Subject>[],
  subject: Subject,
): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const { name, find, isVital } of checks) {
    const found = findingsOf(name, await find(subject));
    findings.push(...found);
    if (isVital && found.some(({ state }) => state === 'problem')) break;
  }
  return findings;
}

export function findingsOf(check: string, found: Found | readonly Found[]): Finding[] {
  return [found].flat().flatMap((each): Finding[] => {
    if (each === undefined) return [];
    if (typeof each === 'string') return [{ check, state: 'ok', says: each }];
    return [{ check, state: 'problem', says: each.says, advice: each.advice }];
  });
}

/** The message of an error for the operator. @throws any other error. */
export function messageOf(error: unknown): string {
  if (error instanceof SetupError) return error.message;
  throw error;
}

/** How long, in milliseconds, a check waits for a database, a port or an upstream. */
export const timeout = 5_000;
