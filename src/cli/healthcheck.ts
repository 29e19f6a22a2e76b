/** `dovetail healthcheck`: asks the running gateway whether it is ready, as a container does. */

import { readFile } from 'node:fs/promises';
import { Command } from 'commander';
import { readConfig } from '../config/config.ts';
import { SetupError } from '../errors.ts';
import { originOf } from '../http/hostName.ts';

/** How long, in milliseconds, the gateway may take to respond. */
const timeout = 4_000;

export const healthcheckCommand = new Command('healthcheck')
  .description(
    'ask the running gateway whether it is ready, at what WRITE_URL_TO says, or else HOST and PORT',
  )
  .action(async () => {
    const { WRITE_URL_TO, HOST, PORT } = readConfig(process.env);
    const written = WRITE_URL_TO && (await readFile(WRITE_URL_TO, 'utf8').catch(() => undefined));
    const url = written || originOf(HOST, PORT);
    const response = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(timeout) }).catch(() => {
      throw new SetupError(`Nothing responds at ${url}.`);
    });
    process.stdout.write(await response.text());
    if (!response.ok) process.exitCode = 1;
  });
