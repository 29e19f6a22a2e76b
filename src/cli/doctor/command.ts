/** `dovetail doctor`: says what keeps a gateway from running well. */

import { styleText } from 'node:util';
import { Command } from 'commander';
import { examine } from './checks.ts';
import type { Finding } from './finding.ts';

export const doctorCommand = new Command('doctor')
  .description('check settings, database, port and the rest, and say what to do; changes no data')
  .option('--json', 'as JSON')
  .action(async ({ json }: { json?: true }) => {
    const findings = await examine(process.env);
    const isWell = findings.every(({ state }) => state !== 'problem');
    process.stdout.write(
      json ? `${JSON.stringify({ ok: isWell, findings }, null, 2)}\n` : findings.map(line).join(''),
    );
    if (!isWell) process.exitCode = 1;
  });

const marks = { ok: ['green', '✔'], problem: ['red', '✖'] } as const;

function line({ check, state, says, advice }: Finding): string {
  const [colour, mark] = marks[state];
  const text = `${styleText(colour, mark)} ${check.padEnd(16)} ${says}\n`;
  return advice === undefined ? text : `${text}  ${' '.repeat(16)} → ${advice}\n`;
}
