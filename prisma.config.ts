import { defineConfig } from 'prisma/config';

// `prisma generate` insists on a schema engine binary that it never runs, and would download one. Any file
// that exists satisfies it, so it is shown the Node binary: nothing is fetched beyond the package registry.
process.env.PRISMA_SCHEMA_ENGINE_BINARY ??= process.execPath;

export default defineConfig({
  schema: 'prisma/schema.prisma',
  migrations: { path: 'prisma/migrations' },
  // Only Prisma Studio and the like read this. The gateway connects through `src/database`.
  ...(process.env.DATABASE_URL && { datasource: { url: process.env.DATABASE_URL } }),
});
