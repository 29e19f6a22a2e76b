/** The contestants: each is a program that serves the same data from the same database. */

import { fileURLToPath } from 'node:url';
import type { Command, ServerProcess } from './processes.ts';
import type { Endpoint } from './workloads.ts';

export interface Contestant {
  readonly title: string;
  readonly endpoint: Endpoint;
  readonly command: Command;
}

export interface Running extends Contestant {
  readonly server: ServerProcess;
}

export const root = fileURLToPath(new URL('../../../../../', import.meta.url));

/** Dovetail as its users start it, but by default without cached responses, which the other contestants do not have. */
export function dovetail({ cachesResponses = false } = {}): Command {
  return {
    args: ['bin/dovetail.js', 'serve'],
    cwd: root,
    env: cachesResponses ? {} : { RESPONSE_CACHE_MB: '0' },
  };
}

/**
 * Dovetail with its default settings and metrics: cached responses, a log line for each request, written to a file, and rate
 * limits that count every request but reject none.
 */
export function dovetailWithDefaults(): Command {
  return {
    ...dovetail({ cachesResponses: true }),
    env: {
      LOG_LEVEL: 'info',
      RATE_LIMIT: '1000000000',
      RATE_LIMIT_ANONYMOUS: '1000000000',
      METRICS_PORT: '0',
    },
    writesLog: true,
  };
}

/** A server that sends the same response to every request. The environment contains the response. */
export const bare = (): Command => program('bare');

const program = (name: string): Command => ({
  args: [fileURLToPath(new URL(`contestants/${name}.js`, import.meta.url))],
});

/** All contestants. */
export const listContestants = (): readonly Contestant[] => [
  { title: 'Dovetail REST', endpoint: 'rest', command: dovetail() },
  { title: 'Dovetail GraphQL', endpoint: 'graphql', command: dovetail() },
  { title: 'Mercurius + JIT, own SQL', endpoint: 'graphql', command: program('mercurius') },
  { title: 'Yoga, Pothos, Prisma', endpoint: 'graphql', command: program('yoga') },
];
