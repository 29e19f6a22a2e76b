/** Where Prisma's command line finds things: `npx prisma validate`, `format`, `generate`, `studio`, `migrate`. */

import { defineConfig } from 'prisma/config';

/**
 * Prisma downloads its schema engine for every command, though only `migrate` and `db` run it. Any existing file keeps it from
 * downloading, so the other commands work without a network.
 */
const runsSchemaEngine = process.argv.some((argument) => argument === 'migrate' || argument === 'db');
if (!runsSchemaEngine) process.env.PRISMA_SCHEMA_ENGINE_BINARY ??= process.execPath;

export default defineConfig({
  schema: 'prisma/schema.prisma',
  migrations: { path: 'prisma/migrations' },
  // Of `generate`, `validate` and `format` none connects.
  datasource: { url: process.env.DATABASE_URL ?? '' },
});
