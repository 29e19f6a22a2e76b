/** Contestant: Mercurius with its JIT, hand-written SQL and its own loaders. */

import type { AddressInfo } from 'node:net';
import { fastify } from 'fastify';
import { GraphQLError } from 'graphql';
import { mercurius } from 'mercurius';
import { createQueries, type Identified, resolvers, type SessionRow, typeDefs } from './handWritten.ts';
import { announce, authenticate, openPool } from './listen.ts';

const pool = openPool();
const queries = createQueries(pool);

interface Context {
  readonly viewer: number;
}
type Batch<Parent> = readonly { readonly obj: Parent }[];

/** The cache of the loaders is off, since its keys are whole rows as JSON. The statements themselves remove duplicates. */
const loader = <Parent, Result>(load: (batch: Batch<Parent>, context: Context) => Promise<Result>) => ({
  loader: load,
  opts: { cache: false },
});

const app = fastify();
app.register(mercurius, {
  schema: typeDefs,
  // Their parameters are narrower than Mercurius' own types, which do not know this context.
  resolvers: resolvers as never,
  jit: 1,
  graphiql: false,
  context: async ({ headers }) => {
    const viewer = await authenticate(pool, headers.authorization);
    if (viewer === null) throw new GraphQLError('Unauthorized');
    return { queries, viewer };
  },
  loaders: {
    DttSession: {
      segments: loader((batch: Batch<SessionRow>) =>
        queries.segments(batch.map(({ obj }) => obj.databaseId)),
      ),
      trainer: loader((batch: Batch<SessionRow>, { viewer }) =>
        queries.devicesById(
          viewer,
          batch.map(({ obj }) => obj.trainerId),
        ),
      ),
      template: loader((batch: Batch<SessionRow>, { viewer }) =>
        queries.templatesById(
          viewer,
          batch.map(({ obj }) => obj.templateId),
        ),
      ),
    },
    DttTemplate: {
      segments: loader((batch: Batch<Identified>) =>
        queries.templateSegments(batch.map(({ obj }) => obj.databaseId)),
      ),
    },
  } as never,
});

await app.listen({ port: 0, host: '127.0.0.1' });
announce((app.server.address() as AddressInfo).port);
