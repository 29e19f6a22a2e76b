/**
 * The command line tool: `dovetail serve`, and the commands beside it. Promises data on standard output, messages on standard
 * error, and the exit codes below. All but `serve` use the database alone: SQL, or the console, may replace them.
 */

import cluster from 'node:cluster';
import { inspect } from 'node:util';
import { Command, CommanderError } from 'commander';
import { TokenError } from '../auth/tokens.ts';
import { program as howToRun, settingsOf } from '../config/config.ts';
import { findIgnored, override } from '../config/environment.ts';
import { isUnresponsive, unresponsive } from '../database/session.ts';
import { errorText, SetupError, systemCodeOf, UnusableDatabase } from '../errors.ts';
import { extensions } from '../extensions/extensions.ts';
import { guideFile } from '../root.ts';
import { release } from '../version.ts';
import { healthcheckCommand } from './healthcheck.ts';
import { migrateCommand } from './migrate.ts';
import { handleOutputErrors, say } from './output.ts';
import { serveCommand } from './serve.ts';
import { tokenCommand } from './token.ts';
import { userCommand } from './user.ts';

const program = new Command(howToRun())
  .description('A GraphQL gateway over the REST interface for trainers, training programs and lock sessions.')
  .version(release, '-v, --version', 'print the version')
  .showHelpAfterError(`${howToRun()} --help lists the commands`)
  .addCommand(serveCommand)
  .addCommand(userCommand)
  .addCommand(tokenCommand)
  .addCommand(migrateCommand)
  .addCommand(healthcheckCommand)
  .addHelpText(
    'after',
    `
Examples:
  ${howToRun()} serve
      a database of its own, and a demo account
  ${howToRun()} serve --database-url postgresql://…
      your PostgreSQL
  TOKEN=$(${howToRun()} token create --user me --name x)
      a token, in a variable

Settings are environment variables, such as PORT and DATABASE_URL: ${guideFile('configuration.md')} lists them.
The most common have a flag of serve.

Data goes to standard output, words to standard error. Exit codes: 0 done, 1 failed,
2 wrong usage, 130 interrupted.`,
  )
  .hook('preAction', (_, action) => {
    // The primary process has printed these already.
    if (cluster.isWorker) return;
    const { databaseUrl: DATABASE_URL } = action.opts();
    const env = DATABASE_URL === undefined ? process.env : override(process.env, { DATABASE_URL });
    findIgnored(env, Object.keys(settingsOf(extensions))).forEach(say);
  });

for (const extension of extensions)
  for (const command of extension.commands?.(extensions) ?? []) program.addCommand(command);

/** The exit code for wrong usage. */
const wrongUsage = 2;

/** Makes a command and its subcommands throw an error instead of ending the process. */
function overrideExit(command: Command): void {
  command.exitOverride();
  command.commands.forEach(overrideExit);
}
overrideExit(program);
handleOutputErrors();

/** Prisma's code for a transaction that could not begin in time. */
const noTransaction = 'P2028';

/** Whether the database gave no connection, no transaction or no result in time. `pg` has no code for either of its errors. */
const isTimeout = (error: unknown) =>
  isUnresponsive(error) ||
  systemCodeOf(error) === noTransaction ||
  /connection timeout/.test(errorText(error));

/**
 * The text about an error that ended a command. An unexpected error comes with its stack. It is not thrown: Node would also
 * print the line of source, and a line of a minified package may have 60 KB.
 */
function failureText(error: unknown): string {
  if (error instanceof UnusableDatabase && program.commands.some((command) => command.name() === 'doctor'))
    return `${error.message}. Run \`${howToRun()} doctor\`, which says what to do.`;
  if (error instanceof SetupError || error instanceof TokenError) return error.message;
  return isTimeout(error) ? `Gave up: ${unresponsive}` : inspect(error);
}

try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) {
    // Commander has printed the help, the version or an error. Only the error has an exit code other than 0.
    process.exitCode = error.exitCode === 0 ? 0 : wrongUsage;
  } else {
    say(failureText(error));
    // Exits without waiting for the event loop: an embedded engine that has failed may have left timers behind.
    process.exit(1);
  }
}
