/** Every query is also a subscription, and equal subscriptions of a viewer share each result. */

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { statementSpans } from '../../src/channels.ts';
import { type Account, createAccount, setActive } from '../support/accounts.ts';
import { type Events, type SubscribeOptions, subscribe } from '../support/events.ts';
import { graphqlOnce, postJson } from '../support/gateway.ts';
import { gatewayWith } from '../support/setUp.ts';

const open: Events[] = [];

const { gateway, bob } = await gatewayWith(['bob']);
const { client } = gateway.database;
let alice = await createAccount(client, 'alice');
for (const account of [alice, bob]) await setActive(client, account, 0);
afterEach(() => {
  for (const events of open.splice(0)) events.leave();
});

async function follow(query: string, token = alice.token, more: SubscribeOptions = {}): Promise<Events> {
  const events = await subscribe(gateway, token, query, { ...more, accept: '*/*' });
  open.push(events);
  return events;
}

/** For each type, a field with its column, and a change of another column, which only statistics depend on. */
const fields = {
  User: ['profileTitle', 'rank = coalesce(rank, 0) + 1'],
  DttDevice: ['serialNumber', '"apiHits" = "apiHits" + 1'],
  DttSession: ['name', 'passed = passed IS NOT TRUE'],
} as const;

type Type = keyof typeof fields;

/** Changes all records of a type that an account has. */
const write = (type: Type, assignment: string, { userId }: Account) =>
  gateway.database.pool.query(
    `UPDATE "${type}" SET ${assignment} WHERE ${type === 'User' ? 'id' : '"ownerId"'} = ${userId}`,
  );

let values = 0;

/** Sets the field of `fields` to a new value in all records of a type that an account has. */
const change = (type: Type, account: Account) => write(type, `"${fields[type][0]}" = '${++values}'`, account);

it.each<[what: string, type: Type, document: (account: Account) => string]>([
  ['the viewer', 'User', () => '{ viewer { profileTitle } }'],
  ['a record', 'DttDevice', ({ dttDevices: [id] }) => `{ dttDevice(databaseId: ${id}) { serialNumber } }`],
  ['a list', 'DttSession', () => '{ dttSessions(first: 3) { totalCount nodes { id name } } }'],
  ['statistics', 'DttSession', () => '{ dttSessionStats { total { passedSessionCount } } }'],
])(
  'every query delivers its result at once and after a change that alters it, and nothing after other changes: %s',
  async (what, type, documentOf) => {
    const document = documentOf(alice);
    const runQuery = async () => (await graphqlOnce(gateway, alice.token, document)).data;
    const before = await runQuery();
    const events = await follow(`subscription ${document}`);
    expect(await events.next()).toEqual(before);
    const writes = [() => write(type, fields[type][1], alice), () => change(type, alice)];
    const [irrelevant, relevant] = what === 'statistics' ? writes.toReversed() : writes;
    await irrelevant?.();
    await change(type, bob);
    await relevant?.();
    const next = await events.next();
    expect(next).not.toEqual(before);
    expect(next).toEqual(await runQuery());
  },
);

const sessions = 'subscription ($first: Int!) { dttSessions(first: $first) { nodes { name } } }';
const followSessions = () => follow(sessions, alice.token, { variables: { first: 3 } });
const nextOf = (readers: readonly Events[]) => Promise.all(readers.map((events) => events.next()));
const newest = (data: { dttSessions: { nodes: { name: string }[] } }) => data.dttSessions.nodes[0]?.name;

/** Gives each test an account of its own, since the streams of earlier tests may not have ended yet. */
async function useNewAccount(): Promise<void> {
  alice = await createAccount(gateway.database.client, `alice-${++values}`);
}

describe('equal subscriptions of a viewer', () => {
  beforeEach(useNewAccount);

  it('run one statement for a change, however many there are, and none when another one starts', async () => {
    const first = await followSessions();
    await first.next();
    const statements: string[] = [];
    const note = (span: unknown) => {
      const { text } = span as { text: string };
      if (text.includes('FROM "DttSession"')) statements.push(text);
    };
    statementSpans.start.subscribe(note);
    const others = await Promise.all(Array.from({ length: 30 }, followSessions));
    await nextOf(others);
    expect(statements).toEqual([]);
    const next = nextOf([first, ...others]);
    await change('DttSession', alice);
    expect(new Set((await next).map(newest))).toEqual(new Set([`${values}`]));
    statementSpans.start.unsubscribe(note);
    expect(statements).toHaveLength(1);
  });

  it('start with what their client has just written, even if others have started before', async () => {
    const query = 'subscription { activeDttTemplate { databaseId } }';
    const early = await follow(query);
    await early.next();
    for (let round = 0; round < 6; round++) {
      const id = alice.dttTemplates[round % 2];
      await postJson(gateway, alice.token, `/dtt/templates/${id}`, { isActive: true });
      const late = await follow(query);
      expect(await late.next()).toEqual({ activeDttTemplate: { databaseId: id } });
      late.leave();
    }
  });

  it('have the same document, variables and operation', async () => {
    const document = `subscription own($first: Int!) { dttSessions(first: $first) { nodes { id } } }
      subscription other($first: Int!) { dttSessions(first: $first) { nodes { name } } }`;
    const shapes: string[][] = [];
    for (const first of [1, 2])
      for (const operationName of ['own', 'other']) {
        const events = await follow(document, alice.token, { variables: { first }, operationName });
        shapes.push((await events.next()).dttSessions.nodes.flatMap(Object.keys));
      }
    expect(shapes).toEqual([['id'], ['name'], ['id', 'id'], ['name', 'name']]);
  });
});
