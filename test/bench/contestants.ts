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

/** Dovetail as its users start it, but without cached responses, which the other contestants do not have. */
export const dovetail = (): Command => ({
  args: ['bin/dovetail.js', 'serve'],
  cwd: root,
  env: { RESPONSE_CACHE_MB: '0' },
});

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
