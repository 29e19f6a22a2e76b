/** `npm run demo:upstream`: a stand-in for the live service, to try the mirror without an account. */

import { parseArgs } from 'node:util';
import { startDemo, tellDemo } from '../support/standIn/demo.ts';

const { values } = parseArgs({
  options: {
    sessions: { type: 'string', default: '60' },
    rate: { type: 'string', default: '60' },
    port: { type: 'string', default: '4100' },
  },
});
const options = {
  sessions: numberOf('sessions', 0, 100_000),
  rate: numberOf('rate', 1, 1_000_000),
  port: numberOf('port', 0, 65_535),
};

try {
  process.stdout.write(tellDemo(await startDemo(options), options));
} catch (error) {
  if (!(error instanceof Error && 'code' in error && error.code === 'EADDRINUSE')) throw error;
  process.stderr.write(`Port ${options.port} is taken. Choose another one with -- --port N.\n`);
  process.exitCode = 1;
}

function numberOf(name: keyof typeof values, min: number, max: number): number {
  const number = Number(values[name]);
  if (Number.isInteger(number) && number >= min && number <= max) return number;
  process.stderr.write(`--${name} must be an integer from ${min} to ${max}\n`);
  process.exit(2);
}
