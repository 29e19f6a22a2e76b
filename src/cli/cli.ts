#!/usr/bin/env node
/** The command line tool: `dovetail serve`, `dovetail token …`, `dovetail sync`. */

import { Command } from 'commander';
import { TokenError } from '../auth/token.ts';
import { SetupError } from '../config.ts';
import { serve } from '../main.ts';
import { UpstreamError } from '../sync/upstream.ts';
import { syncCommand } from './sync.ts';
import { tokenCommand } from './token.ts';

const serveCommand = new Command('serve')
  .description('run the gateway')
  .option('--workers <n>', 'processes that serve, or auto for one per core (WORKERS)')
  .action(({ workers }: { workers?: string }) => serve(workers === undefined ? {} : { WORKERS: workers }));

const program = new Command('dovetail')
  .description('A GraphQL gateway over the REST interface for trainers, training programs and lock sessions.')
  .addCommand(serveCommand)
  .addCommand(tokenCommand)
  .addCommand(syncCommand);

try {
  await program.parseAsync();
} catch (error) {
  const isForUser =
    error instanceof SetupError || error instanceof TokenError || error instanceof UpstreamError;
  if (!isForUser) throw error;
  process.stderr.write(`${error.message}\n`);
  // At once: an embedded engine that has failed may have left timers behind.
  process.exit(1);
}
