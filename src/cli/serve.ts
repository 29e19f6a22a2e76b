/** `dovetail serve`: runs the gateway. */

import { Command } from 'commander';
import { settings } from '../config/config.ts';
import { guideFile } from '../root.ts';

/** The settings with a flag: those that users set when they try things out. */
const flags = [
  ['--host <address>', 'HOST'],
  ['--port <number>', 'PORT'],
  ['--database-url <url>', 'DATABASE_URL'],
  ['--data-dir <folder>', 'DATA_DIR'],
  ['--workers <count>', 'WORKERS'],
  ['--log-level <level>', 'LOG_LEVEL'],
] as const;

export const serveCommand = new Command('serve')
  .alias('start')
  .description('run the gateway')
  // npm takes the flags before `--` as its own: `npm start --port 4001` passes on only the number.
  .showHelpAfterError('Put flags of npm start after `--`: npm start -- --port 4001')
  .addHelpText(
    'after',
    `
A flag goes before the variable in its brackets. All other settings are variables alone:
${guideFile('configuration.md')} lists them.`,
  );

for (const [flag, name] of flags) {
  const { description, takes, schema } = settings[name];
  const defaultValue = schema.safeParse(undefined).data;
  const notes = [name, takes, ...(defaultValue === undefined ? [] : [`default: ${defaultValue}`])];
  serveCommand.option(flag, `${description} (${notes.join('; ')})`);
}

serveCommand.action(async (values: Readonly<Record<string, string>>) => {
  // Imported here, so that the other commands start faster.
  const { serve } = await import('../server/serve.ts');
  // Commander has made `databaseUrl` of the flag for DATABASE_URL.
  const named = ([attribute, value]: [string, string]) =>
    [attribute.replace(/[A-Z]/g, '_$&').toUpperCase(), value] as const;
  await serve(Object.fromEntries(Object.entries(values).map(named)));
});
