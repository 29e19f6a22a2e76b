/** Contestant: Apollo Server on Fastify, with hand-written SQL and DataLoader. */

import type { AddressInfo } from 'node:net';
import { ApolloServer } from '@apollo/server';
import { fastifyApolloDrainPlugin, fastifyApolloHandler } from '@as-integrations/fastify';
import DataLoader from 'dataloader';
import { fastify } from 'fastify';
import { GraphQLError } from 'graphql';
import { createQueries, type Identified, resolvers, type SessionRow, typeDefs } from './handWritten.ts';
import { announce, authenticate, openPool } from './listen.ts';

const pool = openPool();
const queries = createQueries(pool);

function createContext(viewer: number) {
  return {
    viewer,
    queries,
    segments: new DataLoader(queries.segments),
    trainers: new DataLoader((ids: readonly number[]) => queries.devicesById(viewer, ids)),
    templates: new DataLoader((ids: readonly number[]) => queries.templatesById(viewer, ids)),
    templateSegments: new DataLoader(queries.templateSegments),
  };
}
type Context = ReturnType<typeof createContext>;

const app = fastify();
const server = new ApolloServer<Context>({
  typeDefs,
  resolvers: {
    ...resolvers,
    DttSession: {
      segments: ({ databaseId }: SessionRow, _args: unknown, { segments }: Context) =>
        segments.load(databaseId),
      trainer: ({ trainerId }: SessionRow, _args: unknown, { trainers }: Context) => trainers.load(trainerId),
      template: ({ templateId }: SessionRow, _args: unknown, { templates }: Context) =>
        templateId === null ? null : templates.load(templateId),
    },
    DttTemplate: {
      segments: ({ databaseId }: Identified, _args: unknown, { templateSegments }: Context) =>
        templateSegments.load(databaseId),
    },
  },
  introspection: false,
  plugins: [fastifyApolloDrainPlugin(app)],
});
await server.start();
app.post(
  '/graphql',
  fastifyApolloHandler(server, {
    context: async ({ headers }) => {
      const viewer = await authenticate(pool, headers.authorization);
      if (viewer === null) throw new GraphQLError('Unauthorized', { extensions: { http: { status: 401 } } });
      return createContext(viewer);
    },
  }),
);

await app.listen({ port: 0, host: '127.0.0.1' });
announce((app.server.address() as AddressInfo).port);
