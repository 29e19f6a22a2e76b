/** The one thing that changes: which template is active (docs/rest.md#activation). */

import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ScheduleType } from '../../src/database/generated/prisma/client.ts';
import { type Account, createAccount, importTemplate } from '../support/accounts.ts';
import {
  graphqlOnEveryPath,
  openBeside,
  openTestGateway,
  postJson,
  rest,
  type TestGateway,
} from '../support/gateway.ts';

let gateway: TestGateway;
let alice: Account;
let bob: Account;

beforeAll(async () => {
  gateway = await openTestGateway();
  alice = await createAccount(gateway.database.client, 'alice');
  bob = await createAccount(gateway.database.client, 'bob');
  await importTemplate(gateway.database.client, alice, bob.dttTemplates[0]);
});
afterAll(() => gateway?.close());

beforeEach(() => put('auto', null));

/** Sets how Alice's schedule stands before a test. */
async function put(scheduleType: ScheduleType, activeTemplateId: number | null): Promise<void> {
  await gateway.database.client.user.update({
    where: { id: alice.userId },
    data: { scheduleType, activeTemplateId },
  });
  await hasBecome(activeTemplateId);
}

/** Of what is written past the gateway it hears a moment later. */
const hasBecome = (id: number | null) =>
  vi.waitFor(async () => expect(await active()).toBe(id), { timeout: 20_000 });

interface Outcome {
  readonly scheduleTypeChanged?: unknown;
  readonly error?: string;
}

/** The two APIs, each with how it activates a template of Alice's. */
const endpoints: readonly [string, (id: number) => Promise<Outcome>][] = [
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
      if (errors?.[0]) return { error: errors[0].message };
      expect(data.activateTemplate.template).toEqual({ databaseId, isActive: true });
      return { scheduleTypeChanged: data.activateTemplate.scheduleTypeChanged };
    },
  ],
];

/** What both APIs say is active, after checking that they agree, in lists as in single records. */
async function active(): Promise<number | null> {
  const { data } = await graphqlOnEveryPath(
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
  const { data } = await graphqlOnEveryPath(gateway, alice.token, '{ viewer { scheduleType } }');
  return data.viewer.scheduleType;
};

const rejection = { error: 'Template not found or not owned by user' };

describe.each(endpoints)('activating a template through %s', (_, activate) => {
  it.each<[ScheduleType, boolean]>([
    ['auto', true],
    ['weekly', true],
    ['single', false],
  ])('makes it the active one, and the schedule single, from %s', async (before, scheduleTypeChanged) => {
    await put(before, null);
    expect(await activate(alice.dttTemplates[1])).toEqual({ scheduleTypeChanged });
    expect(await active()).toBe(alice.dttTemplates[1]);
    expect(await scheduleType()).toBe('SINGLE');
  });

  it('makes the one that was active inactive', async () => {
    await put('single', alice.dttTemplates[0]);
    await activate(alice.dttTemplates[2]);
    expect(await active()).toBe(alice.dttTemplates[2]);
  });

  it('makes an imported one that was active inactive', async () => {
    await put('single', bob.dttTemplates[0]);
    expect(await active()).toBe(bob.dttTemplates[0]);
    await activate(alice.dttTemplates[0]);
    expect(await active()).toBe(alice.dttTemplates[0]);
  });

  it.each(['auto', 'weekly'] as const)(
    'again leaves it active, and makes the schedule type single: %s',
    async (type) => {
      await put(type, alice.dttTemplates[0]);
      expect(await activate(alice.dttTemplates[0])).toEqual({ scheduleTypeChanged: true });
      expect([await active(), await scheduleType()]).toEqual([alice.dttTemplates[0], 'SINGLE']);
    },
  );

  it('again succeeds, and changes nothing', async () => {
    await activate(alice.dttTemplates[0]);
    const before = await gateway.database.client.user.findUnique({ where: { id: alice.userId } });
    expect(await activate(alice.dttTemplates[0])).toEqual({ scheduleTypeChanged: false });
    expect(await active()).toBe(alice.dttTemplates[0]);
    expect(await gateway.database.client.user.findUnique({ where: { id: alice.userId } })).toEqual(before);
  });

  it.each<[string, () => number]>([
    ['an imported', () => bob.dttTemplates[0]],
    ['a foreign', () => bob.dttTemplates[1]],
    ['a missing', () => 2 ** 31 - 1],
  ])('is rejected for %s one, and changes nothing', async (_, id) => {
    await put('weekly', alice.dttTemplates[1]);
    expect(await activate(id())).toEqual(rejection);
    expect(await active()).toBe(alice.dttTemplates[1]);
    expect(await scheduleType()).toBe('WEEKLY');
  });

  it('touches nobody else', async () => {
    const others = { where: { id: { not: alice.userId } }, orderBy: { id: 'asc' } } as const;
    const before = await gateway.database.client.user.findMany(others);
    await activate(alice.dttTemplates[0]);
    await activate(bob.dttTemplates[1]);
    expect(await gateway.database.client.user.findMany(others)).toEqual(before);
  });
});

const fragment = 'fragment F on DttTemplate { tagline segments { durationSeconds } }';

describe('the template that an activation gives', () => {
  it.each([
    'template { id }',
    'template { name isActive isImported viewerCanActivate createdAt segments { id type } }',
    'template { a: name b: name isActive first: segments { type } segments { repeat template { name } } }',
    'template { name } again: template { name: tagline segments { durationSeconds } }',
    'template { ... on Node { id } ...F } ... on ActivateTemplatePayload { more: template { ...F owner { username } } }',
    'template @skip(if: true) { name } scheduleTypeChanged',
    'template @include(if: true) { sessions(first: 2) { totalCount nodes { id } } owner { username } }',
    'template { name } previousTemplate { name isActive } viewer { activeDttTemplate { isActive } }',
  ])('is what a query finds afterwards: %s', async (selected) => {
    await put('weekly', alice.dttTemplates[0]);
    const id = alice.dttTemplates[1];
    const withFragment = (text: string) => (text.includes('...F') ? `${text} ${fragment}` : text);
    // Runs twice: what is read of a place in the operation is made once.
    for (let time = 0; time < 2; time++) {
      const written = await graphqlOnEveryPath(
        gateway,
        alice.token,
        withFragment(`mutation { activateTemplate(template: { databaseId: ${id} }) { ${selected} } }`),
      );
      expect(written.errors).toBeUndefined();
      const { scheduleTypeChanged, previousTemplate, viewer, ...templates } = written.data.activateTemplate;
      const asked = selected
        .replace(/scheduleTypeChanged|previousTemplate.*|\.\.\. on ActivateTemplatePayload {(.*)}$/g, '$1')
        .replaceAll(
          /(\w+: )?template(?= (?:@\w+\(.*?\) )?{ (?!name } }))/g,
          (_, alias = 'template: ') => `${alias}dttTemplate(databaseId: ${id})`,
        );
      const read = await graphqlOnEveryPath(
        gateway,
        alice.token,
        withFragment(`{ viewer { rank } ${asked} }`),
      );
      expect(read.errors).toBeUndefined();
      const { viewer: _, ...found } = read.data;
      expect(templates).toEqual(found);
      if (viewer) expect(viewer.activeDttTemplate).toEqual({ isActive: true });
      if (time === 0 && previousTemplate) expect(previousTemplate.isActive).toBe(false);
    }
  });
});

describe('fifty activations at once, through both APIs', () => {
  it('all succeed, leave exactly one active, and change the schedule type once', async () => {
    const templates = await gateway.database.client.dttTemplate.createManyAndReturn({
      data: Array.from({ length: 50 }, (_, index) => ({
        ownerId: alice.userId,
        bubbleId: `concurrent-${index}`,
        name: `Concurrent ${index}`,
        targetDepth: 50,
        targetWindow: 10,
      })),
      select: { id: true },
    });
    // A template may have been replaced by another by the time its own response is read, so only what the
    // activation itself says is looked at here.
    const release = await holdViewer();
    const responses = Promise.all(
      templates.map(async ({ id }, index) => {
        if (index % 2 === 0) {
          const { status, body } = await postJson(gateway, alice.token, `/dtt/templates/${id}`, {
            isActive: true,
          });
          return { status, id: Object(body.data).id, changed: Object(body.data).scheduleTypeChanged };
        }
        const { status, data } = await graphqlOnEveryPath(
          gateway,
          alice.token,
          `mutation { activateTemplate(template: { databaseId: ${id} }) { scheduleTypeChanged template { databaseId } } }`,
        );
        const { template, scheduleTypeChanged } = data.activateTemplate;
        return { status, id: template.databaseId, changed: scheduleTypeChanged };
      }),
    );
    // Time for as many as there are connections to come up to the row, so that they do meet there.
    await setTimeout(200);
    await release();
    const outcomes = await responses;
    expect(outcomes.map(({ status, id }) => ({ status, id }))).toEqual(
      templates.map(({ id }) => ({ status: 200, id })),
    );
    expect(outcomes.filter(({ changed }) => changed)).toHaveLength(1);
    expect(templates.map(({ id }) => id)).toContain(await active());
    expect(await scheduleType()).toBe('SINGLE');
    await gateway.database.client.dttTemplate.deleteMany({
      where: { id: { in: templates.map(({ id }) => id) } },
    });
  });
});

/** Locks Alice's row, so that activations wait for each other there until it is released. */
async function holdViewer(): Promise<() => Promise<void>> {
  const connection = await gateway.database.pool.connect();
  await connection.query('BEGIN');
  await connection.query('SELECT FROM "User" WHERE id = $1 FOR UPDATE', [alice.userId]);
  return async () => {
    await connection.query('COMMIT');
    connection.release();
  };
}

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

describe.each(endpoints)('an activation through %s that meets another transaction', (_, activate) => {
  /** A transaction of somebody else. */
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

  it.each([
    ['a template', false],
    ['the active template', true],
  ])('finds nothing when that deletes %s', async (_, isActive) => {
    const { id } = await gateway.database.client.dttTemplate.create({
      data: { ownerId: alice.userId, bubbleId: 'brief', name: 'Brief', targetDepth: 1, targetWindow: 1 },
    });
    const before = isActive ? id : alice.dttTemplates[0];
    await put('weekly', before);
    const deletion = await begin();
    await deletion.query('DELETE FROM "DttTemplate" WHERE id = $1', id);
    const outcome = activate(id);
    await waiting(1);
    await deletion.commit();
    expect(await outcome).toEqual(rejection);
    await hasBecome(isActive ? null : before);
    expect(await scheduleType()).toBe('WEEKLY');
  });

  it('succeeds after a deadlock that PostgreSQL resolved against it', async () => {
    const other = await begin();
    // It never looks for a deadlock itself, so the one that does, and gives up, is the activation.
    await other.query(`SET LOCAL deadlock_timeout = '1min'`);
    await other.query('SELECT FROM "User" WHERE id = $1 FOR UPDATE', alice.userId);
    const outcome = activate(alice.dttTemplates[1]);
    await waiting(1);
    await other.query('SELECT FROM "DttTemplate" WHERE id = $1 FOR UPDATE', alice.dttTemplates[1]);
    await other.commit();
    expect(await outcome).toEqual({ scheduleTypeChanged: true });
    expect(await active()).toBe(alice.dttTemplates[1]);
  });
});

describe('activations over connections whose transactions are by default', () => {
  it.each(['repeatable read', 'serializable'])('%s all succeed', async (level) => {
    const { client, pool } = gateway.database;
    const { rows } = await pool.query<{ name: string }>('SELECT current_database() AS name');
    const alter = (change: string) => client.$executeRawUnsafe(`ALTER DATABASE ${rows[0]?.name} ${change}`);
    await alter(`SET default_transaction_isolation = '${level}'`);
    const other = await openTestGateway(await openBeside(gateway.database));
    try {
      const release = await holdViewer();
      const responses = Promise.all(
        Array.from({ length: 8 }, (_, index) => {
          const path = `/dtt/templates/${alice.dttTemplates[index % 3]}`;
          return postJson(other, alice.token, path, { isActive: true });
        }),
      );
      await waiting(8);
      await release();
      expect((await responses).map(({ status }) => status)).toEqual(Array.from({ length: 8 }, () => 200));
    } finally {
      await other.close();
      await alter('RESET default_transaction_isolation');
    }
  });
});

describe('a template that was active', () => {
  it('is not active any more once it is deleted, or not imported any more', async () => {
    const { client } = gateway.database;
    const { id } = await client.dttTemplate.create({
      data: { ownerId: alice.userId, bubbleId: 'brief', name: 'Brief', targetDepth: 1, targetWindow: 1 },
    });
    await put('single', id);
    await client.dttTemplate.delete({ where: { id } });
    await hasBecome(null);

    const [, imported] = bob.dttTemplates;
    const userId_templateId = { userId: alice.userId, templateId: imported };
    await importTemplate(client, alice, imported);
    await put('single', imported);
    await client.dttLibraryEntry.delete({ where: { userId_templateId } });
    await hasBecome(null);
  });
});

it('finds no template in REST where that was not there to be read', async () => {
  const own = await openBeside(gateway.database);
  const writeAndFind: typeof own.sql.writeAndFind = async (...given) => ({
    ...(await own.sql.writeAndFind(...given)),
    found: [],
  });
  const other = await openTestGateway({ ...own, sql: { ...own.sql, writeAndFind } });
  const [id] = alice.dttTemplates;
  const response = await postJson(other, alice.token, `/dtt/templates/${id}`, { isActive: true });
  expect(response).toMatchObject({
    status: 404,
    body: { ok: false, error: 'Template not found or not owned by user' },
  });
  await other.close();
});

it('gives each template as it was made active, whoever deletes them at once', async () => {
  const { client, pool } = gateway.database;
  const templates = await client.dttTemplate.createManyAndReturn({
    data: Array.from({ length: 20 }, (_, index) => ({
      ownerId: alice.userId,
      bubbleId: `short-lived-${index}`,
      name: 'Brief',
      targetDepth: 1,
      targetWindow: 1,
    })),
    select: { id: true },
  });
  const responses = await Promise.all(
    templates.map(async ({ id }) => {
      const responding = postJson(gateway, alice.token, `/dtt/templates/${id}`, { isActive: true });
      const deleting = pool.query('DELETE FROM "DttTemplate" WHERE id = $1', [id]);
      await deleting;
      return { id, ...(await responding) };
    }),
  );
  for (const { id, status, body } of responses) {
    if (status === 200) expect(body.data).toMatchObject({ id, name: 'Brief', isActive: true });
    else expect({ status, body }).toEqual({ status: 404, body: { ok: false, ...rejection } });
  }
  await hasBecome(null);
});

describe('what the mutation gives back', () => {
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

  it('suits clients that cache records by their ids: the template, the one before, the viewer', async () => {
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
    // The same again, by the other id that a template has.
    const id = Buffer.from(`DttTemplate:${second}`).toString('base64url');
    expect(await activate({ id })).toEqual({ ...changed, previousTemplate: null });
  });

  it('has the one before also of activations that meet: each is before one other, but for the last', async () => {
    const release = await holdViewer();
    const activations = Promise.all(alice.dttTemplates.map((databaseId) => activate({ databaseId })));
    // Time for them to come up to the row, so that they do meet there.
    await setTimeout(200);
    await release();
    const before = (await activations).map(({ previousTemplate }) => previousTemplate?.databaseId ?? null);
    const last = await active();
    expect(alice.dttTemplates).toContain(last);
    const others = alice.dttTemplates.filter((id) => id !== last);
    expect(new Set(before)).toEqual(new Set([null, ...others]));
  });

  it('has a template that was imported as the one before', async () => {
    const [imported] = bob.dttTemplates;
    await put('single', imported);
    const { previousTemplate } = await activate({ databaseId: alice.dttTemplates[0] });
    expect(previousTemplate).toEqual({ databaseId: imported, isActive: false });
  });

  it('is promised by the template, which says whether the viewer can activate it', async () => {
    const { data } = await graphqlOnEveryPath(
      gateway,
      alice.token,
      '{ dttTemplates { nodes { databaseId isImported viewerCanActivate } } }',
    );
    expect(data.dttTemplates.nodes).toHaveLength(4);
    for (const { databaseId, isImported, viewerCanActivate } of data.dttTemplates.nodes) {
      const { errors } = await graphqlOnEveryPath(
        gateway,
        alice.token,
        `mutation { activateTemplate(template: { databaseId: ${databaseId} }) { scheduleTypeChanged } }`,
      );
      expect(viewerCanActivate).toBe(errors === undefined);
      expect(isImported).toBe(databaseId === bob.dttTemplates[0]);
    }
  });

  it.each([
    ['global id', () => ({ id: Buffer.from('DttTemplate:999999').toString('base64url') })],
    ['integer', () => ({ databaseId: 999_999 })],
  ])('is NOT_FOUND for a template that is not there, named by its %s', async (_, reference) => {
    const { data, errors } = await graphqlOnEveryPath(
      gateway,
      alice.token,
      `mutation ($template: DttTemplateReference!) { activateTemplate(template: $template) ${payload} }`,
      { template: reference() },
    );
    expect(data).toEqual({ activateTemplate: null });
    expect(errors).toMatchObject([{ message: rejection.error, extensions: { code: 'NOT_FOUND' } }]);
  });
});

it('is seen by what is read behind it, also where two stand in one operation', async () => {
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
