/** The Relay example of docs/clients.md, built with Relay's compiler and run with its runtime against a gateway. */

import { execFileSync } from 'node:child_process';
import { resolve } from 'node:path';
import {
  createOperationDescriptor,
  fetchQuery,
  type GraphQLTaggedNode,
  getRequest,
  getSingularSelector,
  type SingularReaderSelector,
} from 'relay-runtime';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { describeFrontend, type Templates, useScene } from '../../support/frontends.ts';
import { openBeside, openTestGateway, type TestGateway } from '../../support/gateway.ts';

/** Imports a module of the built example. The build checks its types. */
const load = (name: string) => import(/* @vite-ignore */ resolve('test/large/relay/generated/docs', name));
type Built = Awaited<ReturnType<typeof loadAll>>;
let built: Built;
async function loadAll(project: string) {
  const page = await load(`${project}/src/__generated__/sessionsPageQuery.graphql.ts`);
  return {
    ...(await load(`${project}/src/environment.ts`)),
    ...(await load(`${project}/src/sessions.ts`)),
    ...(await load(`${project}/src/templates.ts`)),
    ...(await load('app/src/live.ts')),
    page: page.default,
  };
}
beforeAll(async () => {
  const run = (...parameters: string[]) => execFileSync(process.execPath, ['--import', 'tsx', ...parameters]);
  run('test/docs/extract.ts', 'test/large/relay/generated/docs', 'app', 'relay');
  run('test/large/relay/build.ts');
  built = await loadAll('relay');
});

/** The part of the list that the tests read. */
interface Sessions {
  readonly id: string;
  readonly dttSessions: {
    readonly edges: readonly { node: { name: string | null } }[];
    readonly pageInfo: { endCursor: string };
  };
}

const scene = useScene();
const transports = ['server-sent events', 'a WebSocket'];
const connectBy = (transport?: string) =>
  transport === 'a WebSocket' ? built.connectSocket : built.connectEvents;

describeFrontend(
  {
    client: 'Relay',
    activation: 'templatesActivationMutation',
    // Relay sends hashes only of documents that its compiler has stored.
    persists: false,
    transports,
    open(url, token, transport) {
      const environment = built.createEnvironment(url, token, connectBy(transport)(url, token));
      const fetchRetained = (query: GraphQLTaggedNode, variables = {}) => {
        // A component that shows the query retains it too.
        environment.retain(createOperationDescriptor(getRequest(query), variables));
        return fetchQuery(environment, query, variables).toPromise();
      };
      const read = (query: GraphQLTaggedNode) =>
        environment.lookup(createOperationDescriptor(getRequest(query), {}).fragment).data;
      const readList = (): Sessions => {
        const selector = getSingularSelector(built.list, read(built.sessions).viewer);
        // The viewer of the query has this fragment, so that the selector is singular.
        return environment.lookup(selector as SingularReaderSelector).data;
      };
      let hasFirstPage = false;
      return {
        async readPage() {
          if (!hasFirstPage) await fetchRetained(built.sessions);
          else {
            // `loadNext` of `usePaginationFragment` does the same.
            const { id, dttSessions } = readList();
            await fetchRetained(built.page, { id, after: dttSessions.pageInfo.endCursor, first: 20 });
          }
          hasFirstPage = true;
          return readList().dttSessions.edges.map(({ node }) => node.name);
        },
        readTemplates: () => fetchRetained(built.templates) as Promise<Templates>,
        templatesInCache: () => read(built.templates),
        activate: (id) => built.activate(environment, id),
        follow: () => built.follow(environment),
        codeOf: built.codeOf,
      };
    },
  },
  scene,
);

describe('a gateway that accepts trusted documents only', () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await openTestGateway(await openBeside(scene().gateway.database), {
      settings: {
        PERSISTED_OPERATIONS_FILE: 'test/large/relay/generated/docs/trusted/persisted.json',
        PERSISTED_OPERATIONS: 'only',
      },
    });
  });
  afterAll(() => gateway?.close());

  it.each(transports)(
    'runs the persisted documents of Relay, with subscriptions over %s',
    async (transport) => {
      const { createEnvironment, templates, activate, follow } = await loadAll('trusted');
      const { alice, ids, sent, activateElsewhere } = scene();
      const url = `${gateway.url}/graphql`;
      const environment = createEnvironment(url, alice.token, connectBy(transport)(url, alice.token));
      const operation = createOperationDescriptor(getRequest(templates), {});
      environment.retain(operation);
      const active = () => environment.lookup(operation.fragment).data.viewer.activeDttTemplate.id;

      await fetchQuery(environment, templates, {}).toPromise();
      await activate(environment, ids[1]);
      expect(active()).toBe(ids[1]);
      const stop = follow(environment);
      await activateElsewhere(2);
      await expect.poll(active, { timeout: 20_000 }).toBe(ids[2]);
      stop();
      expect(sent().map(({ query }) => query || undefined)).toEqual(sent().map(() => undefined));
    },
  );
});
