/**
 * Reads the operations that requests may name by id from a file: at the start, and again after each change. The settings are the core's, since
 * one has the name of the other with `_FILE`.
 */

import type { Extension } from '../../extensionPoints.ts';

export const persistedOperations: Extension = {
  settings: {},

  complain: ({ PERSISTED_OPERATIONS, PERSISTED_OPERATIONS_FILE }) =>
    PERSISTED_OPERATIONS === 'only' && PERSISTED_OPERATIONS_FILE === undefined
      ? ['PERSISTED_OPERATIONS=only needs PERSISTED_OPERATIONS_FILE, which names them.']
      : [],

  async open(config, { schema, logger }) {
    const { PERSISTED_OPERATIONS_FILE: path } = config;
    if (path === undefined) return undefined;
    const { documentsFor, openPersistedFile } = await import('./file.ts');
    const persisted = await openPersistedFile({ path, documents: documentsFor(config, schema), logger });
    return { persisted, close: persisted.close };
  },
};
