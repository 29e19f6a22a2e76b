/**
 * Reads the operations that requests may name by id from a file: at the start, and again after each change. The settings are the core's, since
 * one has the name of the other with `_FILE`.
 */

import type { GraphQLSchema } from 'graphql';
import type { Config } from '../../config/config.ts';
import type { Extension } from '../../extensionPoints.ts';

/** The file, and the documents to check it with; undefined without a file. */
async function fileOf(config: Config, schema?: GraphQLSchema) {
  const { PERSISTED_OPERATIONS_FILE: path } = config;
  if (path === undefined) return undefined;
  const file = await import('./file.ts');
  return { path, documents: file.documentsFor(config, schema), ...file };
}

export const persistedOperations: Extension = {
  settings: {},

  complain: ({ PERSISTED_OPERATIONS, PERSISTED_OPERATIONS_FILE }) =>
    PERSISTED_OPERATIONS === 'only' && PERSISTED_OPERATIONS_FILE === undefined
      ? ['PERSISTED_OPERATIONS=only needs PERSISTED_OPERATIONS_FILE, which names them.']
      : [],

  checks: (config, loadSchema) => [
    [
      'operations',
      async () => {
        const file = await fileOf(config, await loadSchema());
        return (
          file && `${file.loadPersistedOperations(file.path, file.documents).operations.size} can be run`
        );
      },
    ],
  ],

  async open(config, { schema, logger }) {
    const file = await fileOf(config, schema);
    const persisted = file?.openPersistedFile({ ...file, logger });
    return persisted && { persisted, close: persisted.close };
  },
};
