/**
 * The gateway's rules for operations, as plugins of Yoga. They take part in this order, whatever transport an operation comes by:
 * find its document, read it, check its scope, count its fields, execute it once or after each change.
 */

import type { Plugin } from 'graphql-yoga';
import type { Config } from '../../config/config.ts';
import type { GatewayPlugin } from '../context.ts';
import type { Documents } from '../documents.ts';
import type { PersistedOperations } from '../persisted.ts';
import { useComplexity } from './complexity.ts';
import { useDocuments } from './documents.ts';
import { useErrorLog } from './errors.ts';
import { usePreparedExecution } from './execution.ts';
import { type LiveQueryOptions, useLiveQueries } from './liveQueries.ts';
import { usePersistedOperations } from './persistedOperations.ts';
import { useRequestReader } from './requestReader.ts';
import { useScopes } from './scopes.ts';
import { useStreams } from './streams.ts';

export interface PluginOptions {
  readonly config: Config;
  readonly documents: Documents;
  readonly persisted: PersistedOperations;
  readonly live: LiveQueryOptions['live'];
  /** Plugins of others, which come last: they see the operations that the gateway's rules allow, and their results. */
  readonly others: readonly Plugin[];
}

export const plugins = ({
  config,
  documents,
  persisted,
  live,
  others,
}: PluginOptions): (GatewayPlugin | Plugin)[] => [
  useRequestReader(),
  usePersistedOperations(persisted),
  useDocuments(documents),
  useScopes(),
  useComplexity(config, documents),
  usePreparedExecution(),
  useLiveQueries({ live, areResultsRead: others.length > 0 }),
  useStreams(),
  useErrorLog(),
  ...others,
];
