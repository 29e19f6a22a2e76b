/** What docs/clients.md shows of Relay, built by its compiler and run by its runtime against a gateway. */

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
import { describeFrontend, type Templates, useScene } from '../support/frontends.ts';

/** What the page shows, built. Its types are checked where it is built. */
const load = (name: string) => import(/* @vite-ignore */ resolve('test/relay/generated/docs', name));
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
  execFileSync('npm', ['run', '--silent', 'codegen'], { cwd: 'test/relay' });
  built = await loadAll();
});

/** As far as the tests look at the list. */
interface Sessions {
  readonly id: string;
  readonly dttSessions: {
    readonly edges: readonly { node: { name: string | null } }[];
    readonly pageInfo: { endCursor: string };
  };
}

describeFrontend(
  {
    client: 'Relay',
    activation: 'templatesActivationMutation',
    transports: ['server-sent events'],
    open(url, token, transport) {
      const connect = transport === 'a WebSocket' ? built.connectSocket : built.connectEvents;
      const environment = built.createEnvironment(url, token, connect(url, token));
      const ask = (query: GraphQLTaggedNode, variables = {}) => {
        // As a component does that shows it.
        environment.retain(createOperationDescriptor(getRequest(query), variables));
        return fetchQuery(environment, query, variables).toPromise();
      };
      const read = (query: GraphQLTaggedNode) =>
        environment.lookup(createOperationDescriptor(getRequest(query), {}).fragment).data;
      const readList = (): Sessions => {
        const selector = getSingularSelector(built.list, read(built.sessions).viewer);
        // The query has a viewer, whose fragment this is.
        return environment.lookup(selector as SingularReaderSelector).data;
      };
      let begun = false;
      return {
        async readPage() {
          if (!begun) await ask(built.sessions);
          else {
            // What `loadNext` of `usePaginationFragment` does.
            const { id, dttSessions } = readList();
            await ask(built.page, { id, after: dttSessions.pageInfo.endCursor, first: 20 });
          }
          begun = true;
          return readList().dttSessions.edges.map(({ node }) => node.name);
        },
        readTemplates: () => ask(built.templates) as Promise<Templates>,
        templatesInCache: () => read(built.templates),
        activate: (id) => built.activate(environment, id),
        follow: () => built.follow(environment),
        codeOf: built.codeOf,
      };
    },
  },
  useScene(),
);
