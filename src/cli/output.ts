/** Output of commands whose reader may have closed the pipe. */

import { errorText } from '../errors.ts';

/** Writes to standard output. Rejects if that fails. */
export const print = (text: string): Promise<void> =>
  new Promise((resolve, reject) => {
    process.stdout.write(text, (error) => (error ? reject(error) : resolve()));
  });

/** Handles errors of the output streams: without a listener, such an error would end the process as an exception. */
export function ignoreOutputErrors(): void {
  // Added once, even if a test runs several commands.
  process.stdout.off('error', reportFailure).on('error', reportFailure);
  process.stderr.off('error', ignore).on('error', ignore);
}

function reportFailure(error: NodeJS.ErrnoException): void {
  // A reader that closes the pipe, such as `head`, has read what it wanted.
  if (error.code === 'EPIPE') return;
  process.stderr.write(`Standard output cannot be written: ${errorText(error)}\n`);
  process.exitCode = 1;
}

/** Nothing can be reported when standard error fails. */
function ignore(): void {}
