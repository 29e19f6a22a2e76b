/**
 * `npm run codegen`: checks every operation of the console, of the REST routes and of the example clients against the schema,
 * and writes their types.
 */

import type { CodegenConfig } from '@graphql-codegen/cli';

const types = {
  preset: 'client',
  config: { scalars: { DateTime: 'string', LocalDate: 'string' }, useTypeImports: true, enumsAsTypes: true },
} as const;

const config: CodegenConfig = {
  schema: 'schema.graphql',
  emitLegacyCommonJSImports: false,
  silent: true,
  generates: {
    'console/generated/': {
      ...types,
      documents: 'console/src/**/*.{ts,tsx}',
      presetConfig: { fragmentMasking: false },
    },
    // The types of REST responses, whose fields have the aliases of the operations as names.
    'test/generatedClients/generated/rest/': {
      ...types,
      schema: 'src/rest/directives.graphql',
      documents: 'src/rest/operations.graphql',
      presetConfig: { fragmentMasking: false },
    },
    'test/generatedClients/generated/client/': {
      ...types,
      documents: 'explorer/examples/*.graphql',
    },
  },
};

export default config;
