/** The example of Apollo Client in docs/clients.md, run against a gateway. */

import { execFileSync } from 'node:child_process';
import { resolve } from 'node:path';
import { GraphQLWsLink } from '@apollo/client/link/subscriptions';
import { beforeAll } from 'vitest';
import { describeFrontend, useScene } from '../../support/frontends.ts';

const folder = 'test/large/apollo/generated/docs';

/** Imports a module of the example. */
const load = (name: string) => import(/* @vite-ignore */ resolve(folder, 'app/src', name));
let built: Awaited<ReturnType<typeof loadAll>>;
const loadAll = async () => ({
  ...(await load('operations.ts')),
  ...(await load('live.ts')),
  ...(await load('apollo.ts')),
  ...(await load('apolloEvents.ts')),
});
beforeAll(async () => {
  const run = (...parameters: string[]) => execFileSync(process.execPath, parameters, { stdio: 'pipe' });
  run('--import', 'tsx', 'test/docs/extract.ts', folder, 'app', 'apollo');
  run('node_modules/typescript/bin/tsc', '--project', 'test/large/apollo');
  built = await loadAll();
});

const scene = useScene();

describeFrontend(
  {
    client: 'Apollo Client',
    activation: 'Activate',
    persists: true,
    transports: ['multipart', 'server-sent events', 'a WebSocket'],
    open(url, token, transport) {
      const client = built.createApollo(url, token, {
        ...(transport === 'a WebSocket' && { live: new GraphQLWsLink(built.connectSocket(url, token)) }),
        ...(transport === 'server-sent events' && {
          live: built.overEvents(built.connectEvents(url, token)),
        }),
      });
      const sessions = built.watchSessions(client);
      return {
        async readPage() {
          const page = await built.readSessions(sessions);
          return page?.edges?.map((edge) => edge?.node?.name ?? null) ?? [];
        },
        readTemplates: async () => (await client.query({ query: built.templatesQuery })).data,
        templatesInCache: () => client.readQuery({ query: built.templatesQuery }) ?? undefined,
        activate: (id) => built.activate(client, id),
        follow: () => built.follow(client),
        codeOf: built.codeOf,
      };
    },
  },
  scene,
);
