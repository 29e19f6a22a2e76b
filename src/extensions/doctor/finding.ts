/** What a check finds, and how a list of checks is run. */

import type { Check } from '../../extensionPoints.ts';

export interface Finding {
  readonly check: string;
  readonly state: 'ok' | 'problem';
  /** The state, or the problem. */
  readonly says: string;
  readonly advice?: string;
}

/** Runs checks one after the other, up to a vital one that finds a problem. */
export async function runChecks(checks: readonly Check[]): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const [check, find, isVital] of checks) {
    const found = await find();
    if (found === undefined) continue;
    const isGood = typeof found === 'string';
    findings.push(isGood ? { check, state: 'ok', says: found } : { check, state: 'problem', ...found });
    if (isVital && !isGood) break;
  }
  return findings;
}
