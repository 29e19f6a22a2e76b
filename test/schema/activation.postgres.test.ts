/** The one write of the API: activating a template (docs/rest.md#activation). */

import { setTimeout } from 'node:timers/promises';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { ScheduleType } from '../../src/database/generated/prisma/client.ts';
import { importTemplate } from '../support/accounts.ts';
import { graphqlOnce, graphqlOnEveryPath, postJson, rest } from '../support/gateway.ts';
import { gatewayWith } from '../support/setUp.ts';

const { gateway, alice, bob } = await gatewayWith(['alice', 'bob']);
await importTemplate(gateway.database.client, alice, bob.dttTemplates[0]);

beforeEach(() => setSchedule('auto', null));

/** Sets Alice's schedule type and active template before a test. */
async function setSchedule(scheduleType: ScheduleType, activeTemplateId: number | null): Promise<void> {
  await gateway.database.client.user.update({
    where: { id: alice.userId },
    data: { scheduleType, activeTemplateId },
  });
  await untilActive(activeTemplateId);
}

/** Waits until the gateway shows the template as active: a change in the database reaches it a moment later. */
const untilActive = (id: number | null) =>
  vi.waitFor(async () => expect(await active()).toBe(id), { timeout: 20_000 });

interface Outcome {
  readonly scheduleTypeChanged?: unknown;
  readonly error?: string;
}

type Endpoint = readonly [string, (id: number) => Promise<Outcome>];

/** The two APIs, each with a function that activates a template of Alice's. */
const endpoints: readonly [Endpoint, Endpoint] = [
  [
    'REST',
    async (id) => {
      const { body } = await postJson(gateway, alice.token, `/dtt/templates/${id}`, { isActive: true });
      if (body.error !== undefined) return { error: body.error };
      expect(body.data).toMatchObject({ id, isActive: true });
      return { scheduleTypeChanged: Object(body.data).scheduleTypeChanged };
    },
  ],
  [
    'GraphQL',
    async (databaseId) => {
      const { data, errors } = await graphqlOnEveryPath(
        gateway,
        alice.token,
        `mutation ($databaseId: Int!) { activateTemplate(template: { databaseId: $databaseId }) {
          scheduleTypeChanged
          template { databaseId isActive }
        } }`,
        { databaseId },
      );
      if (errors?.[0]) {
        expect(errors[0].extensions).toEqual({ code: 'NOT_FOUND', argument: 'template' });
        return { error: errors[0].message };
      }
      expect(data.activateTemplate.template).toEqual({ databaseId, isActive: true });
      return { scheduleTypeChanged: data.activateTemplate.scheduleTypeChanged };
    },
  ],
];

/** The id of the active template, after a check that both APIs agree on it, in lists and in single records. */
async function active(): Promise<number | null> {
  const { data } = await graphqlOnce(
    gateway,
    alice.token,
    `{
      activeDttTemplate { databaseId isActive }
      viewer { activeDttTemplate { databaseId } }
      dttTemplates(first: 100) { nodes { databaseId isActive } }
    }`,
  );
  const id: number | null = data.activeDttTemplate?.databaseId ?? null;
  expect(data.viewer.activeDttTemplate?.databaseId ?? null).toBe(id);
  const flagged = data.dttTemplates.nodes.filter(({ isActive }: { isActive: boolean }) => isActive);
  expect(flagged).toEqual(id === null ? [] : [{ databaseId: id, isActive: true }]);
  const { body } = await rest(gateway, alice.token, '/dtt/templates/active');
  expect(Object(body.data).id ?? null).toBe(id);
  return id;
}

const scheduleType = async () => {
  const { data } = await graphqlOnce(gateway, alice.token, '{ viewer { scheduleType } }');
  return data.viewer.scheduleType;
};

const rejection = { error: 'Template not found or not owned by user' };

/** All users as the database has them, Alice first. */
const users = () =>
  gateway.database.client.user.findMany({
    where: { id: { in: [alice.userId, bob.userId] } },
    orderBy: { id: 'asc' },
  });

describe.each(endpoints)('activating a template through %s', (_, activate) => {
  it.each<[ScheduleType, active: 0 | 1, scheduleTypeChanged: boolean]>([
    ['weekly', 0, true],
    ['auto', 1, true],
    ['single', 0, false],
    ['single', 1, false],
  ])(
    'changes the schedule type %s to single and the active template, which was that of index %i, and nothing else',
    async (before, index, scheduleTypeChanged) => {
      await setSchedule(before, alice.dttTemplates[index]);
      const [own, other] = await users();
      const [, activated] = alice.dttTemplates;
      expect(await activate(activated)).toEqual({ scheduleTypeChanged });
      expect([await active(), await scheduleType()]).toEqual([activated, 'SINGLE']);
      expect(await users()).toEqual([{ ...own, scheduleType: 'single', activeTemplateId: activated }, other]);
    },
  );

  it.each<[string, () => number]>([
    ['an imported', () => bob.dttTemplates[0]],
    ['a foreign', () => bob.dttTemplates[1]],
    ['a missing', () => 2 ** 31 - 1],
  ])('is rejected for %s one and changes nothing', async (_, id) => {
    await setSchedule('weekly', alice.dttTemplates[1]);
    const before = await users();
    expect(await activate(id())).toEqual(rejection);
    expect(await users()).toEqual(before);
  });
});

/** Begins another transaction. */
async function begin() {
  const connection = await gateway.database.pool.connect();
  await connection.query('BEGIN');
  return {
    query: (sql: string, ...values: unknown[]) => connection.query(sql, values),
    async commit() {
      await connection.query('COMMIT');
      connection.release();
    },
  };
}

/** Locks a user's row, so that the user's activations wait for each other there until the end of the transaction. */
const lockViewer = 'SELECT FROM "User" WHERE id = $1 FOR UPDATE';

/** Waits until so many statements wait for a lock. */
const waiting = (count: number) =>
  vi.waitFor(
    async () => {
      const { rows } = await gateway.database.pool.query(
        `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      );
      expect(rows).toHaveLength(count);
    },
    { timeout: 8_000 },
  );

describe('an activation that waits for another transaction', () => {
  const [, [, activate]] = endpoints;

  it.each([
    ['a template', false],
    ['the active template', true],
  ])('is rejected when that transaction deletes %s', async (_, isActive) => {
    const { id } = await gateway.database.client.dttTemplate.create({
      data: { ownerId: alice.userId, bubbleId: 'brief', name: 'Brief', targetDepth: 1, targetWindow: 1 },
    });
    const before = isActive ? id : alice.dttTemplates[0];
    await setSchedule('weekly', before);
    const deletion = await begin();
    await deletion.query('DELETE FROM "DttTemplate" WHERE id = $1', id);
    const outcome = activate(id);
    await waiting(1);
    await deletion.commit();
    expect(await outcome).toEqual(rejection);
    await untilActive(isActive ? null : before);
    expect(await scheduleType()).toBe('WEEKLY');
  });
});

describe('the payload of the mutation', () => {
  const payload = `{
    scheduleTypeChanged
    template { databaseId isActive }
    previousTemplate { databaseId isActive }
    viewer { databaseId scheduleType activeDttTemplate { databaseId } }
  }`;
  const activate = async (reference: object) => {
    const { data, errors } = await graphqlOnEveryPath(
      gateway,
      alice.token,
      `mutation ($template: DttTemplateReference!) { activateTemplate(template: $template) ${payload} }`,
      { template: reference },
    );
    expect(errors).toBeUndefined();
    return data.activateTemplate;
  };

  it('has every changed record for the caches of clients: the template, the previous template and the viewer', async () => {
    const [first, second] = alice.dttTemplates;
    const viewer = (databaseId: number) => ({
      databaseId: alice.userId,
      scheduleType: 'SINGLE',
      activeDttTemplate: { databaseId },
    });
    const template = (databaseId: number, isActive: boolean) => ({ databaseId, isActive });

    expect(await activate({ databaseId: first })).toEqual({
      scheduleTypeChanged: true,
      template: template(first, true),
      previousTemplate: null,
      viewer: viewer(first),
    });
    const changed = { scheduleTypeChanged: false, template: template(second, true), viewer: viewer(second) };
    expect(await activate({ databaseId: second })).toEqual({
      ...changed,
      previousTemplate: template(first, false),
    });
    // The same activation again, by the global id of the template.
    const id = Buffer.from(`DttTemplate:${second}`).toString('base64url');
    expect(await activate({ id })).toEqual({ ...changed, previousTemplate: null });
  });

  it('has the right previous template when activations are concurrent: each but the last is the previous one of another', async () => {
    const other = await begin();
    await other.query(lockViewer, alice.userId);
    const activations = Promise.all(alice.dttTemplates.map((databaseId) => activate({ databaseId })));
    // Time for all of them to wait for the lock of the row at the same time.
    await setTimeout(200);
    await other.commit();
    const payloads = await activations;
    expect(payloads.filter(({ scheduleTypeChanged }) => scheduleTypeChanged)).toHaveLength(1);
    const before = payloads.map(({ previousTemplate }) => previousTemplate?.databaseId ?? null);
    const last = await active();
    expect(alice.dttTemplates).toContain(last);
    const others = alice.dttTemplates.filter((id) => id !== last);
    expect(new Set(before)).toEqual(new Set([null, ...others]));
  });
});

it('two activations in one operation each show their own template as active in the payload', async () => {
  const [first, second] = alice.dttTemplates;
  const { data } = await graphqlOnEveryPath(
    gateway,
    alice.token,
    `mutation ($first: Int!, $second: Int!) {
      first: activateTemplate(template: { databaseId: $first }) { ...Active }
      second: activateTemplate(template: { databaseId: $second }) { ...Active }
    }
    fragment Active on ActivateTemplatePayload {
      template { isActive owner { activeDttTemplate { databaseId } dttTemplates { nodes { databaseId isActive } } } }
    }`,
    { first, second },
  );
  for (const [payload, id] of [
    [data.first, first],
    [data.second, second],
  ] as const) {
    const { isActive, owner } = payload.template;
    expect(isActive).toBe(true);
    expect(owner.activeDttTemplate.databaseId).toBe(id);
    const active = owner.dttTemplates.nodes.filter((node: { isActive: boolean }) => node.isActive);
    expect(active.map(({ databaseId }: { databaseId: number }) => databaseId)).toEqual([id]);
  }
});
