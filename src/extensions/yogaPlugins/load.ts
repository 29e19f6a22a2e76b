/** Loads plugins for Yoga. */

import * as nodeModule from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import * as graphql from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { errorText, SetupError } from '../../errors.ts';

/** @throws {SetupError} if the module cannot be loaded, or has something else than a list of plugins as its default export. */
export async function loadPlugins(path: string): Promise<readonly Plugin[]> {
  shareGraphql();
  try {
    const { default: plugins } = await import(/* @vite-ignore */ pathToFileURL(resolve(path)).href);
    if (!Array.isArray(plugins)) throw new Error('its default export is not a list of plugins');
    return plugins;
  } catch (error) {
    throw new SetupError(`YOGA_PLUGINS ${path} cannot be used: ${errorText(error)}`);
  }
}

const shared = Symbol.for('dovetail.graphql');
const url = 'dovetail:graphql';

/** The hooks of Node 22.15 and later, which the types of Node 20 lack. */
interface LoaderHooks {
  registerHooks?(hooks: {
    resolve(specifier: string, context: object, next: (specifier: string, context: object) => object): object;
    load(url: string, context: object, next: (url: string, context: object) => object): object;
  }): void;
}

/**
 * Gives plugins that import `graphql` the gateway's own. The bundle has a copy of it, and graphql-js rejects types of another copy.
 */
function shareGraphql(): void {
  Object.assign(globalThis, { [shared]: graphql });
  const names = Object.keys(graphql).filter((name) => name !== 'default' && !name.includes('.'));
  const source = `const own = globalThis[Symbol.for('dovetail.graphql')];
    export const { ${names.join(', ')} } = own;
    export default own;`;
  // The types of Node 20 do not have it.
  const { registerHooks } = nodeModule as LoaderHooks;
  registerHooks?.({
    resolve: (specifier, context, next) =>
      specifier === 'graphql' ? { url, shortCircuit: true } : next(specifier, context),
    load: (loaded, context, next) =>
      loaded === url ? { format: 'module', source, shortCircuit: true } : next(loaded, context),
  });
}
