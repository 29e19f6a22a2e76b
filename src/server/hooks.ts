/** Opens the extensions, and joins what they do: the server and the pipeline see one function for each moment. */

import type { GraphQLSchema } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import type { FeedOptions } from '../database/database.ts';
import { type Extension, type GatewayParts, type Hooks, ownersOf, schemaOf } from '../extensionPoints.ts';
import { extensions } from '../extensions/extensions.ts';
import type { HttpResponse } from '../http/response.ts';
import type { AccountsElsewhere } from '../pages/accounts.ts';

export type JoinedHooks = ReturnType<typeof joinHooks>;

/** The schema of `/graphql`; undefined for the core's own. */
export const loadSchema = (config: Config): Promise<GraphQLSchema | undefined> =>
  schemaOf(extensions, config);

/** Plugins of others for Yoga. */
export async function loadPlugins(config: Config): Promise<readonly Plugin[]> {
  const lists = extensions.map(async (extension) => extension.plugins?.(config) ?? []);
  return (await Promise.all(lists)).flat();
}

/** Undefined where accounts live here alone. */
export function findAccountsElsewhere(config: Config): AccountsElsewhere | undefined {
  for (const extension of extensions) {
    const accounts = extension.accounts?.(config);
    if (accounts) return accounts;
  }
  return undefined;
}

/** How a database without accounts gets one. */
export const starters = extensions.flatMap(({ starter = [] }) => starter);

/** To whom the users of a database may belong. */
export const owners = ownersOf(extensions);

/** How changes are announced and heard of, besides NOTIFY. */
export const feedOptions = (
  config: Config,
  logger: Logger,
): Required<Pick<FeedOptions, 'choose' | 'readLog'>> => ({
  async choose(server) {
    for (const extension of extensions) await extension.chooseFeed?.(config, server, logger);
  },
  readLog: extensions.find((extension) => extension.readLog)?.readLog,
});

/**
 * Opens the extensions that the settings ask for, in the order of the list.
 * @param add takes each that was opened, to be closed with the gateway.
 * @param list by default all extensions.
 */
export async function openExtensions(
  config: Config,
  parts: Omit<GatewayParts, 'metrics' | 'noteChange'>,
  add: (hooks: Hooks) => void,
  list: readonly Extension[] = extensions,
): Promise<JoinedHooks> {
  const opened: Hooks[] = [];
  function noteChange(viewerId: number): void {
    parts.responseCache.invalidate(viewerId);
    for (const hooks of opened) hooks.changed?.(viewerId, true);
  }
  for (const extension of list) {
    const metrics = opened.flatMap((hooks) => hooks.metrics ?? []);
    const hooks = await extension.open?.(config, { ...parts, metrics, noteChange });
    if (!hooks) continue;
    add(hooks);
    opened.push(hooks);
  }
  return joinHooks(opened);
}

/** Joins hooks. Each moment calls those that have something to do at it, in their order. */
export function joinHooks(all: readonly Hooks[]) {
  const first = <Name extends keyof Hooks>(name: Name) =>
    all.find((hooks) => hooks[name] !== undefined)?.[name];
  const those = (name: keyof Hooks) => all.filter((hooks) => hooks[name] !== undefined);
  const [reading, writing, changing] = [those('beforeRead'), those('afterWrite'), those('changed')];
  const [beginning, ending] = [those('began'), those('ended')];
  return {
    endpoints: all.flatMap(({ endpoints = [] }) => endpoints),
    missingPages: Object.assign({}, ...all.map(({ missingPages }) => missingPages)),
    lines: all.flatMap(({ lines = [] }) => lines),
    connections: all.reduce((sum, { connections = 0 }) => sum + connections, 0),
    // One extension alone can do these. Undefined where none does.
    sqlFor: first('sqlFor'),
    tokens: first('tokens'),
    shownToken: first('shownToken'),
    persisted: first('persisted') ?? { generation: 0, operations: new Map<string, string>() },
    upgrades: first('upgrades'),
    handleRest: first('handleRest'),
    runBatch: first('runBatch'),
    createFollower: first('createFollower'),
    elsewhere: first('elsewhere'),
    compile: first('compile'),
    longest: Math.max(0, ...all.map(({ longest = 0 }) => longest)),
    readyLines: () => those('readyLine').flatMap((hooks) => hooks.readyLine?.() ?? []),
    beforeRead(...given) {
      let waiting: Promise<HttpResponse | undefined> | undefined;
      for (const hooks of reading) {
        const wait = () => hooks.beforeRead?.(...given);
        waiting = waiting ? waiting.then((early) => early ?? wait()) : wait();
      }
      return waiting;
    },
    async afterWrite(...given) {
      for (const hooks of writing) await hooks.afterWrite?.(...given);
    },
    changed(...given) {
      for (const hooks of changing) hooks.changed?.(...given);
    },
    serving(url) {
      for (const hooks of all) hooks.serving?.(url);
    },
    began(exchange) {
      for (const hooks of beginning) hooks.began?.(exchange);
    },
    ended(outcome) {
      for (const hooks of ending) hooks.ended?.(outcome);
    },
  } satisfies { readonly [Name in keyof Hooks]: Hooks[Name] | undefined } & {
    readyLines(): readonly string[];
  };
}
