/** `npm run demo:upstream`: a stand-in for the live service, to try the mirror without an account. */

import { Command, InvalidArgumentError } from 'commander';
import { type DemoOptions, startDemo, tellDemo } from '../support/standIn/demo.ts';

const options = new Command('npm run demo:upstream --')
  .description('Starts a stand-in for the live service, with two accounts that it holds in memory.')
  .option('--sessions <number>', 'training sessions of each account', integer(0, 100_000), 60)
  .option('--rate <number>', 'requests a minute for each account', integer(1, 1_000_000), 60)
  .option('--port <number>', 'the port that it listens to; 0 picks a free one', integer(0, 65_535), 4_100)
  .showHelpAfterError()
  .parse()
  .opts<DemoOptions>();

try {
  process.stdout.write(tellDemo(await startDemo(options), options));
} catch (error) {
  if (!(error instanceof Error && 'code' in error && error.code === 'EADDRINUSE')) throw error;
  process.stderr.write(`Port ${options.port} is taken. Choose another one with -- --port N.\n`);
  process.exitCode = 1;
}

/** Makes a function that reads the value of an option. */
function integer(min: number, max: number): (text: string) => number {
  return (text) => {
    const number = Number(text);
    if (Number.isInteger(number) && number >= min && number <= max) return number;
    throw new InvalidArgumentError(`It takes an integer from ${min} to ${max}.`);
  };
}
