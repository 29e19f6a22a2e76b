/** Opens the extensions, and joins what they do: the server and the pipeline see one function for each moment. */

import type { Plugin } from 'graphql-yoga';
import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import type { FeedOptions } from '../database/database.ts';
import { type Extension, type GatewayParts, type Hooks, ownersOf, schemaOf } from '../extensionPoints.ts';
import { extensions } from '../extensions/extensions.ts';
import type { HttpResponse } from '../http/response.ts';
import type { AccountsElsewhere } from '../pages/accounts.ts';

/** Undefined where accounts live here alone. */
export const findAccountsElsewhere = (config: Config): AccountsElsewhere | undefined =>
  extensions.map((extension) => extension.accounts?.(config)).find((accounts) => accounts !== undefined);

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

/** The parts of a gateway that its extensions and its server use. */
export type ServingParts = Pick<GatewayParts, 'database' | 'feed' | 'responseCache' | 'turns' | 'logger'>;

/**
 * Opens the extensions that the settings ask for, in the order of the list.
 * @param add takes each that was opened, to be closed with the gateway.
 * @param list by default all extensions.
 */
export async function openExtensions(
  config: Config,
  given: ServingParts,
  add: (hooks: Hooks) => void,
  list: readonly Extension[] = extensions,
): Promise<JoinedHooks> {
  const accounts = findAccountsElsewhere(config);
  const schema = await schemaOf(list, config);
  const parts = { ...given, accounts, schema, owners };
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
  const plugins = await Promise.all(list.map(async (extension) => extension.plugins?.(config) ?? []));
  return { ...joinHooks(opened), accounts, schema, plugins: plugins.flat() };
}

/** What extensions do in a gateway. */
export interface JoinedHooks
  extends ReturnType<typeof joinHooks>,
    Partial<Pick<GatewayParts, 'accounts' | 'schema'>> {
  /** Plugins for Yoga. */
  readonly plugins?: readonly Plugin[];
}

/**
 * Joins hooks. Most moments have one extension at most that does something there, of those that go together.
 * @throws {Error} if there is a second one, which would take the place of the first.
 */
export function joinHooks(all: readonly Hooks[]) {
  const single: Hooks = Object.assign({}, ...all);
  const shared: readonly string[] = ['lines', 'beforeRead', 'metrics', 'close'] satisfies (keyof Hooks)[];
  const names = all.flatMap((hooks) => Object.keys(hooks)).filter((name) => !shared.includes(name));
  const twice = names.find((name, index) => names.indexOf(name) < index);
  if (twice !== undefined) throw new Error(`Two extensions take part at ${twice}, where one can`);
  return {
    ...single,
    persisted: single.persisted ?? { generation: 0, operations: new Map<string, string>() },
    endpoints: single.endpoints ?? [],
    lines: all.flatMap(({ lines = [] }) => lines),
    beforeRead: joinWaits(all),
  };
}

/** Waits for one after the other, until one has a response. */
function joinWaits(all: readonly Hooks[]): Hooks['beforeRead'] {
  const waits = all.flatMap(({ beforeRead = [] }) => beforeRead);
  if (waits.length === 0) return undefined;
  return (...given) => {
    let waiting: Promise<HttpResponse | undefined> | undefined;
    for (const wait of waits)
      waiting = waiting ? waiting.then((early) => early ?? wait(...given)) : wait(...given);
    return waiting;
  };
}
