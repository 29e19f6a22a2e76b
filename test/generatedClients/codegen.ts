/** Typed documents: `npm run codegen` checks every operation against the schema and writes their types. */

import type { CodegenConfig } from '@graphql-codegen/cli';

const config: CodegenConfig = {
  emitLegacyCommonJSImports: false,
  generates: {
    // For the example of a frontend in test/generatedClients.
    'generated/client/': {
      preset: 'client',
      schema: '../../schema.graphql',
      documents: ['*.ts', '../../src/graphql/examples/*.graphql'],
      config: {
        scalars: { DateTime: 'string', LocalDate: 'string' },
        useTypeImports: true,
        enumsAsTypes: true,
      },
    },
    // For the console, which uses only the types.
    '../../console/generated/': {
      preset: 'client',
      schema: '../../schema.graphql',
      documents: '../../console/src/**/*.{ts,tsx}',
      config: {
        scalars: { DateTime: 'string', LocalDate: 'string' },
        useTypeImports: true,
        enumsAsTypes: true,
      },
      presetConfig: { fragmentMasking: false },
    },
    // The types of REST responses, whose fields have the aliases of the operations as names.
    'generated/rest/': {
      preset: 'client',
      schema: ['../../schema.graphql', '../../src/rest/directives.graphql'],
      documents: '../../src/rest/operations.graphql',
      config: {
        scalars: { DateTime: 'string', LocalDate: 'string' },
        useTypeImports: true,
        enumsAsTypes: true,
      },
      presetConfig: { fragmentMasking: false },
    },
  },
};

export default config;
