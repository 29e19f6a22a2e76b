/** Opens the extensions, and joins what they do: the server and the pipeline see one function for each moment. */

import type { GraphQLSchema } from 'graphql';
import type { Config } from '../config/config.ts';
import type { GatewayParts, Hooks } from '../extensionPoints.ts';
import { extensions } from '../extensions/extensions.ts';

/** The schema of `/graphql`; undefined for the core's own. */
export async function loadSchema(config: Config): Promise<GraphQLSchema | undefined> {
  for (const extension of extensions) {
    const schema = await extension.schema?.(config);
    if (schema) return schema;
  }
  return undefined;
}

/**
 * Opens the extensions that the settings ask for, in the order of the list.
 * @param add takes each that was opened, to be closed with the gateway.
 * @param others hooks that are joined with those of the extensions.
 */
export async function openExtensions(
  config: Config,
  parts: Omit<GatewayParts, 'metrics'>,
  add: (hooks: Hooks) => void,
  others: readonly Hooks[] = [],
): Promise<Hooks> {
  const opened = [...others];
  for (const extension of extensions) {
    const metrics = opened.flatMap((each) => each.metrics ?? []);
    const hooks = await extension.open?.(config, { ...parts, metrics });
    if (!hooks) continue;
    add(hooks);
    opened.push(hooks);
  }
  return joinHooks(opened);
}

/** Joins hooks that are called in their order. A moment at which none does anything is undefined. */
export function joinHooks(all: readonly Hooks[]): Hooks {
  const those = <Name extends keyof Hooks>(name: Name) =>
    all.flatMap((hooks) => (hooks[name] === undefined ? [] : [hooks]));
  const [beginning, ending] = [those('began'), those('ended')];
  return {
    endpoints: all.flatMap(({ endpoints = [] }) => endpoints),
    missingPages: Object.assign({}, ...all.map(({ missingPages }) => missingPages)),
    lines: all.flatMap(({ lines = [] }) => lines),
    ...(beginning.length > 0 && {
      began: (exchange) => {
        for (const each of beginning) each.began?.(exchange);
      },
    }),
    ...(ending.length > 0 && {
      ended: (outcome) => {
        for (const each of ending) each.ended?.(outcome);
      },
    }),
  };
}
