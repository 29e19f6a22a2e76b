/** The root fields, and the links from one record to another in both directions. */

import { describe, expect, it } from 'vitest';
import { recordTypes } from '../../src/database/models.ts';
import { createAccount, setActive } from '../support/accounts.ts';
import { graphqlOnEveryPath } from '../support/gateway.ts';
import { keys, recordsSeenBy } from '../support/nodes.ts';
import { gatewayWith } from '../support/setUp.ts';

const { gateway, alice } = await gatewayWith(['alice']);
const { client } = gateway.database;
await setActive(client, alice, 1);
const newcomer = await createAccount(client, 'newcomer');

async function ask(query: string) {
  const { status, data, errors } = await graphqlOnEveryPath(gateway, alice.token, query);
  expect(errors).toBeUndefined();
  expect(status).toBe(200);
  return data;
}

it('the active or latest record is also a field of the viewer, and of each owner that is the viewer', async () => {
  const fields = ['activeDttTemplate', 'latestDttSession', 'activeLockTemplate', 'activeLockSession'];
  const selected = [...fields, 'latestLockSession'].map((field) => `${field} { databaseId }`).join(' ');
  const everywhere = `{ ${selected} viewer { ${selected} } dttSessions { nodes { owner { ${selected} } } } }`;
  const { viewer, dttSessions, ...byRootField } = await ask(everywhere);
  expect(viewer).toEqual(byRootField);
  expect(dttSessions.nodes).toEqual(alice.dttSessions.map(() => ({ owner: byRootField })));
});

it('no lock is active, nor a template of one, when its session has ended', async () => {
  const where = { ownerId: alice.userId, isActive: true };
  const [active] = await client.lockSession.updateManyAndReturn({
    where,
    data: { isActive: false },
  });
  const data = await ask('{ activeLockTemplate { databaseId } activeLockSession { databaseId } }');
  expect(data).toEqual({ activeLockTemplate: null, activeLockSession: null });
  await client.lockSession.update({ where: { id: active?.id ?? 0 }, data: { isActive: true } });
});

describe('a link', () => {
  it.each(['xy', 'yx'])('has what each place selects beside a fragment that both have: %s', async (order) => {
    const places = {
      x: `x: dttSession(databaseId: ${alice.dttSessions[0]}) { ...F }`,
      y: `y: dttSession(databaseId: ${alice.dttSessions[0]}) { ...F template { targetDepth } }`,
    };
    const query = order === 'xy' ? places.x + places.y : places.y + places.x;
    const data = await ask(`{ ${query} } fragment F on DttSession { template { name } }`);
    const name = 'Program 0 of alice';
    expect(data).toEqual({ x: { template: { name } }, y: { template: { name, targetDepth: 50 } } });
  });

  const [even, odd] = [
    [0, 2, 4],
    [1, 3],
  ];
  const sessions = (indices: readonly number[] | undefined) =>
    (indices ?? []).map((index) => ({ databaseId: alice.dttSessions[index] }));

  it('leads from a session to its owner, trainer and template, and back', async () => {
    const { dttSessions } = await ask(`{ dttSessions { nodes {
      owner { username }
      trainer { databaseId owner { username } sessions { totalCount } }
      template { databaseId isActive owner { username } sessions { totalCount nodes { databaseId } } }
    } } }`);
    const owner = { username: 'alice' };
    const template = (index: 0 | 1, of: readonly number[] | undefined) => ({
      databaseId: alice.dttTemplates[index],
      isActive: index === 1,
      owner,
      sessions: { totalCount: of?.length, nodes: sessions(of) },
    });
    const session = (index: 0 | 1) => ({
      owner,
      trainer: { databaseId: alice.dttDevices[index], owner, sessions: { totalCount: 3 } },
      template: index === 0 ? template(0, even) : template(1, odd),
    });
    const withoutTemplate = { ...session(1), template: null };
    expect(dttSessions.nodes).toEqual([
      session(0),
      session(1),
      session(0),
      session(1),
      session(0),
      withoutTemplate,
    ]);
  });

  it('leads from a lock session to its template and owner, and back', async () => {
    const { lockSessions, lockTemplates } = await ask(`{
      lockSessions { nodes { template { databaseId } owner { username } } }
      lockTemplates { nodes { owner { username } sessions { totalCount nodes { databaseId } } } }
    }`);
    const owner = { username: 'alice' };
    expect(lockSessions.nodes).toEqual(
      alice.lockTemplates.map((databaseId) => ({ template: { databaseId }, owner })),
    );
    expect(lockTemplates.nodes).toEqual(
      alice.lockSessions.map((databaseId) => ({
        owner,
        sessions: { totalCount: 1, nodes: [{ databaseId }] },
      })),
    );
  });
});

it('segments link back to the record that they are a part of', async () => {
  const { dttTemplate, dttSession, lockSession } = await ask(`{
    dttTemplate(databaseId: ${alice.dttTemplates[0]}) { segments { template { databaseId } } }
    dttSession(databaseId: ${alice.dttSessions[0]}) { segments { session { databaseId } } }
    lockSession(databaseId: ${alice.lockSessions[0]}) { templateId segments { session { databaseId } } }
  }`);
  const [template, session, lock] = [alice.dttTemplates, alice.dttSessions, alice.lockSessions].map(
    ([databaseId]) => ({ databaseId }),
  );
  expect(dttTemplate.segments).toEqual([{ template }, { template }]);
  expect(dttSession.segments).toEqual([{ session }, { session }]);
  expect(lockSession).toEqual({
    templateId: alice.lockTemplates[0],
    segments: [{ session: lock }, { session: lock }],
  });
});

const nodes = `query ($ids: [ID!]!) { nodes(ids: $ids) { ${keys} } }`;

describe('nodes', () => {
  it('come in the order of the ids, as often as each id is given and up to a hundred, with null for records of other users', async () => {
    const own = await recordsSeenBy(gateway, alice.token, 1);
    const foreign = await recordsSeenBy(gateway, newcomer.token, 1);
    expect(new Set(own.map(({ __typename }) => __typename))).toEqual(new Set(recordTypes));
    const wanted = [...own, ...foreign, ...own.toReversed()];
    const [one] = own;
    while (one && wanted.length < 100) wanted.push(one);
    const { data, errors } = await graphqlOnEveryPath(gateway, alice.token, nodes, {
      ids: wanted.map(({ id }) => id),
    });
    expect(errors).toBeUndefined();
    expect(data.nodes).toHaveLength(100);
    expect(data.nodes).toEqual(wanted.map((record) => (foreign.includes(record) ? null : record)));
    for (const record of own)
      expect(await ask(`{ node(id: "${record.id}") { ${keys} } }`)).toEqual({ node: record });
  });

  it('are null with an error each for what is no global id, up to a hundred, beside the records of the other ids', async () => {
    const [record] = await recordsSeenBy(gateway, alice.token, 1);
    const ids = ['x', record?.id, 'RHR0 RGV2aWNlOjE', record?.id];
    const { data, errors } = await graphqlOnEveryPath(gateway, alice.token, nodes, { ids });
    expect(data.nodes).toEqual([null, record, null, record]);
    expect(errors).toMatchObject(
      [0, 2].map((index) => ({
        path: ['nodes', index],
        message: `${JSON.stringify(ids[index])} is not a global id of this schema`,
        extensions: { code: 'BAD_USER_INPUT', argument: 'ids' },
      })),
    );
    const wrong = Array(60).fill('x');
    const twice = nodes.replace('nodes(', 'nodes(ids: $ids) { id } again: nodes(');
    const many = await graphqlOnEveryPath(gateway, alice.token, twice, { ids: wrong });
    expect(many.errors).toHaveLength(100);
  });
});
