/** Typed documents: `npm run codegen` checks every operation against the schema and writes their types. */

import type { CodegenConfig } from '@graphql-codegen/cli';

const config: CodegenConfig = {
  emitLegacyCommonJSImports: false,
  generates: {
    // For frontends, and for the worked example of one in test/generatedClients.
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
    // For the console, which has only the types of it.
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
    // The REST answers, whose names are the aliases of the operations.
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
