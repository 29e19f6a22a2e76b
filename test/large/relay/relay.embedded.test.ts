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
import { beforeAll } from 'vitest';
import { describeFrontend, type Templates, useScene } from '../../support/frontends.ts';

/** Imports a module of the built example. The build checks its types. */
const load = (name: string) => import(/* @vite-ignore */ resolve('test/large/relay/generated/docs', name));
let built: Awaited<ReturnType<typeof loadAll>>;
async function loadAll() {
  const page = await load('relay/src/__generated__/sessionsPageQuery.graphql.ts');
  return {
    ...(await load('relay/src/environment.ts')),
    ...(await load('relay/src/sessions.ts')),
    ...(await load('relay/src/templates.ts')),
    ...(await load('app/src/live.ts')),
    page: page.default,
  };
}
beforeAll(async () => {
  const run = (...parameters: string[]) => execFileSync(process.execPath, ['--import', 'tsx', ...parameters]);
  run('test/docs/extract.ts', 'test/large/relay/generated/docs', 'app', 'relay');
  run('test/large/relay/build.ts');
  built = await loadAll();
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
