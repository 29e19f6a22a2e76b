/** The example of Apollo Client in docs/clients.md, run against a gateway. */

import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { GraphQLWsLink } from '@apollo/client/link/subscriptions';
import { buildSchema, isAbstractType } from 'graphql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { describeFrontend, useScene } from '../../support/frontends.ts';
import { openBeside, openTestGateway, type TestGateway } from '../../support/gateway.ts';

const folder = 'test/large/apollo/generated/docs';

/** Imports a module of the example. */
const load = (name: string) => import(/* @vite-ignore */ resolve(folder, 'app/src', name));
let built: Awaited<ReturnType<typeof loadAll>>;
const loadAll = async () => ({
  ...(await load('operations.ts')),
  ...(await load('live.ts')),
  ...(await load('apollo.ts')),
  ...(await load('apolloEvents.ts')),
  ...(await load('apolloTrusted.ts')),
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

describe('Apollo Client', () => {
  it('has the possible types of every interface and union in its configuration', async () => {
    const schema = buildSchema(await readFile('schema.graphql', 'utf8'));
    const abstract = Object.values(schema.getTypeMap()).filter(isAbstractType);
    expect(built.possibleTypes).toEqual(
      Object.fromEntries(
        abstract.map((type) => [
          type.name,
          schema
            .getPossibleTypes(type)
            .map(({ name }) => name)
            .sort(),
        ]),
      ),
    );
  });
});

describe('a gateway that accepts trusted documents only', () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await openTestGateway(await openBeside(scene().gateway.database), {
      settings: {
        PERSISTED_OPERATIONS_FILE: `${folder}/app/src/gql/persisted-documents.json`,
        PERSISTED_OPERATIONS: 'only',
      },
    });
  });
  afterAll(() => gateway?.close());

  it('runs the queries, mutations and subscriptions of Apollo Client', async () => {
    const { alice, ids, sent, activateElsewhere } = scene();
    const persisted = built.trusted();
    const client = built.createApollo(`${gateway.url}/graphql`, alice.token, { persisted });
    const sessions = await built.readSessions(built.watchSessions(client));
    expect(sessions?.edges).toHaveLength(20);
    await built.activate(client, ids[1]);
    const active: unknown[] = [];
    const following = client
      .subscribe({ query: built.templatesNow })
      .subscribe(({ data }) => active.push(data?.viewer?.activeDttTemplate?.id));
    await expect.poll(() => active, { timeout: 20_000 }).toEqual([ids[1]]);
    await activateElsewhere(2);
    await expect.poll(() => active, { timeout: 20_000 }).toEqual([ids[1], ids[2]]);
    following.unsubscribe();
    expect(sent().map(({ query }) => query)).toEqual([undefined, undefined, undefined]);
  });
});
