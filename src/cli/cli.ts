#!/usr/bin/env node
/** The command line tool: `dovetail serve`, `dovetail token …`. */

import { Command } from 'commander';
import { TokenError } from '../auth/token.ts';
import { SetupError } from '../config.ts';
import { serve } from '../main.ts';
import { tokenCommand } from './token.ts';

const program = new Command('dovetail')
  .description('A GraphQL gateway over the REST interface for trainers, training programs and lock sessions.')
  .addCommand(new Command('serve').description('run the gateway').action(serve))
  .addCommand(tokenCommand);

try {
  await program.parseAsync();
} catch (error) {
  if (!(error instanceof SetupError || error instanceof TokenError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
