/** What commands write, where nobody may read it any more. */

import { errorText } from '../errors.ts';

/** Writes to standard output. Fails where it cannot be written. */
export const print = (text: string): Promise<void> =>
  new Promise((settle, fail) => {
    process.stdout.write(text, (error) => (error ? fail(error) : settle()));
  });

/** Has a stream that cannot be written end no process: without a listener, its error is an exception. */
export function ignoreOutputErrors(): void {
  // Once, however often a test runs a command.
  process.stdout.off('error', tell).on('error', tell);
  process.stderr.off('error', ignore).on('error', ignore);
}

function tell(error: NodeJS.ErrnoException): void {
  // A reader that has left, such as `head`, has read what it wanted.
  if (error.code === 'EPIPE') return;
  process.stderr.write(`Standard output cannot be written: ${errorText(error)}\n`);
  process.exitCode = 1;
}

/** Nobody is left to be told. */
function ignore(): void {}
