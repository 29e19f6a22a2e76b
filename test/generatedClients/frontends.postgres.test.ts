/** Runs the examples of docs/clients.md with the package of each client library against a gateway. */

import { persistedExchange } from '@urql/exchange-persisted';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { describeFrontend, useScene } from '../support/frontends.ts';
import { openBeside, openTestGateway, type TestGateway } from '../support/gateway.ts';
import { connectSocket } from './generated/docs/app/src/live.ts';
import { activation, templatesNow, templatesQuery } from './generated/docs/app/src/operations.ts';
import * as requests from './generated/docs/app/src/request.ts';
import * as urql from './generated/docs/app/src/urql.ts';
import { overSocket } from './generated/docs/app/src/urqlSocket.ts';
import { trusted as trustedExchange } from './generated/docs/app/src/urqlTrusted.ts';
import { devicesQuery, namesOf } from './generated/docs/tada/src/devices.ts';

const scene = useScene();

describeFrontend(
  {
    client: 'urql',
    activation: 'Activate',
    persists: true,
    transports: ['server-sent events', 'a WebSocket'],
    open(url, token, transport) {
      const client = urql.createUrql(
        url,
        token,
        transport === 'a WebSocket'
          ? [persistedExchange(), overSocket(connectSocket(url, token))]
          : undefined,
      );
      let after: string | null | undefined;
      return {
        async readPage() {
          const { edges, pageInfo } = await urql.readSessions(client, after);
          after = pageInfo.endCursor;
          return edges.map(({ node }) => node.name);
        },
        readTemplates: async () => (await client.query(templatesQuery, {})).data,
        templatesInCache: () => client.readQuery(templatesQuery, {})?.data,
        activate: (id) => urql.activate(client, id),
        follow: () => urql.follow(client),
        codeOf: urql.codeOf,
      };
    },
  },
  scene,
);

describe('graphql-request', () => {
  it('reads all pages of a filtered and sorted list', async () => {
    const { url, alice, passed } = scene();
    const names: (string | null)[] = [];
    for await (const { node } of requests.readSessions(requests.createRequests(url, alice.token)))
      names.push(node.name);
    expect(names).toEqual(passed);
  });

  it('activates a template, and returns the code of an error', async () => {
    const { url, alice, ids } = scene();
    const { activateTemplate } = await requests
      .createRequests(url, alice.token)
      .request(activation, { id: ids[1] });
    expect(activateTemplate?.previousTemplate).toMatchObject({ id: ids[0], isActive: false });
    const error = await requests.createRequests(url, 'nobody').request(templatesQuery).catch(Object);
    expect(requests.codeOf(error)).toBe('UNAUTHENTICATED');
  });
});

it('generated types cover the results and variables of a gql.tada document', async () => {
  const { url, alice } = scene();
  const client = requests.createRequests(url, alice.token);
  const data = await client.request(devicesQuery, { first: 2 });
  expect(namesOf(data)).toEqual([expect.stringMatching(/^02:/), expect.stringMatching(/^02:/)]);
  // @ts-expect-error The query does not select it.
  expect(data.devices?.totalCount).toBeUndefined();
  // @ts-expect-error The variable is a number.
  const error = await client.request(devicesQuery, { first: 'two' }).catch(Object);
  expect(requests.codeOf(error)).toBe('BAD_USER_INPUT');
});

describe('a gateway that accepts trusted documents only', () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await openTestGateway(await openBeside(scene().gateway.database), {
      settings: {
        PERSISTED_OPERATIONS_FILE:
          'test/generatedClients/generated/docs/app/src/gql/persisted-documents.json',
        PERSISTED_OPERATIONS: 'only',
      },
    });
  });
  afterAll(() => gateway?.close());

  it('runs the queries, mutations and subscriptions of urql', async () => {
    const { alice, ids, sent, activateElsewhere } = scene();
    const client = urql.createUrql(`${gateway.url}/graphql`, alice.token, [trustedExchange()]);
    const { edges } = await urql.readSessions(client);
    expect(edges).toHaveLength(20);
    await urql.activate(client, ids[1]);
    const active: unknown[] = [];
    const following = client
      .subscription(templatesNow, {})
      .subscribe(({ data }) => active.push(data?.viewer?.activeDttTemplate?.id));
    await expect.poll(() => active).toEqual([ids[1]]);
    await activateElsewhere(2);
    await expect.poll(() => active).toEqual([ids[1], ids[2]]);
    following.unsubscribe();
    expect(sent().map(({ query }) => query)).toEqual([undefined, undefined, undefined]);
  });
});
