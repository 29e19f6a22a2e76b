/**
 * `npm run generate`: writes what the generators of `schema.prisma` make of it. As `prisma generate` does, whose package
 * brings a studio, a cloud client and a development server as well, 230 MB that nobody needs here, and would fetch an
 * engine that it never runs.
 */

import { createRequire } from 'node:module';
import { delimiter, resolve } from 'node:path';

// Their ES modules cannot be loaded by Node.
const require = createRequire(import.meta.url);
const { PrismaClientTsGenerator } = require('@prisma/client-generator-ts');
const { getGenerators, loadSchemaContext } = require('@prisma/internals');

// Pothos' generator is a program of its own.
process.env.PATH = [resolve('node_modules/.bin'), process.env.PATH].join(delimiter);

const schemaContext = await loadSchemaContext({
  schemaPath: { cliProvidedPath: 'prisma/schema.prisma' },
  printLoadMessage: false,
});
const generators = await getGenerators({
  schemaContext,
  registry: { 'prisma-client': { type: 'in-process', generator: new PrismaClientTsGenerator() } },
  skipDownload: true,
  cliCommand: 'generate',
});
for (const generator of generators) {
  await generator.generate();
  generator.stop();
}
