/** Which requests a gateway forwards to the upstream, and what a write changes for its clients of GraphQL. */

import { describe, expect, it, vi } from 'vitest';
import { rest, type TestGateway } from '../../../support/gateway.ts';
import { holdTransaction } from '../../../support/setUp.ts';
import {
  activate,
  arrive,
  ask,
  type FrontedService,
  openForEachTest,
  patch,
} from '../support/frontedService.ts';
import type { Fault } from '../support/standIn/faults.ts';

const alice = 'token-of-alice';

const open = openForEachTest();

it('a 401 for one path alone does not end the token', async () => {
  const { gateway, service } = await open();
  await arrive(gateway, alice);
  const rejection = { status: 401, body: { ok: false, error: 'This token may not do that' } };
  service.misbehave({ instead: () => rejection }, { path: /^\/admin/ });
  expect(await rest(gateway, alice, '/admin/x')).toMatchObject(rejection);
  for (let times = 0; times < 3; times++) {
    expect((await rest(gateway, alice, '/dtt')).status).toBe(200);
    expect((await ask(gateway, alice, '{ viewer { username } }')).status).toBe(200);
  }
});

it('an account whose user the mirror cannot read is forwarded all the same: only the id has to be valid', async () => {
  const { gateway, service } = await open();
  Object.assign(service.account(1).user, { username: null, totalPoints: 3e9 });
  expect((await rest(gateway, alice, '/dtt')).status).toBe(200);
  Object.assign(service.account(2).user, { id: 'two' });
  expect((await rest(gateway, 'token-of-bob', '/dtt')).status).toBe(503);
});

describe('a write', () => {
  it.each([
    ['/dtt/templates/1', { name: 'A new name' }, ['/users/me', '/dtt/templates', '/dtt/templates/1']],
    ['/dtt/templates/999', { name: 'A new name' }, []],
  ])('of a template has only the list of templates read again: %s', async (path, body, expected) => {
    const accounts = [{ id: 1, username: 'alice', tokens: [alice], locked: true }];
    const { gateway, service, database } = await open({ standIn: { accounts } });
    await arrive(gateway, alice);
    // All details have to be read first, so that no request below is for them.
    const pending = { where: { detailsPending: true } };
    await expect.poll(() => database.client.dttSession.count(pending)).toBe(0);
    await expect.poll(() => database.client.dttTemplate.count(pending)).toBe(0);
    service.forgetRequests();
    await patch(gateway, alice, path, body);
    // It waits until the lists have been read again.
    await ask(gateway, alice, '{ viewer { username } }');
    const reads = () => service.requests.filter(({ method }) => method === 'GET');
    const paths = () => [...new Set(reads().map((each) => each.path.replace(/\?.*/, '')))];
    await expect.poll(paths).toEqual(expected);
    // What is here has been read since the write.
    await ask(gateway, alice, '{ viewer { username } }');
    expect(paths()).toEqual(expected);
  });

  it.each(['is locked', 'cannot be written once'])(
    'is told to other gateways also if the row of the account %s',
    async (what) => {
      const { gateway, openAnother, database } = await open({ waits: { announcement: 500 } });
      const other = await openAnother();
      await arrive(gateway, alice);
      const name = async () => String(Object((await rest(other, alice, '/dtt/templates/1')).body).data?.name);
      const before = await name();
      const lock = 'SELECT FROM "MirroredAccount" FOR UPDATE';
      const release = what === 'is locked' ? await holdTransaction(database.pool, lock) : undefined;
      const { query } = database.pool;
      if (!release) {
        let hasFailed = false;
        // Its parameters are those of `query`, which has many forms.
        vi.spyOn(database.pool, 'query').mockImplementation(((...all: unknown[]) => {
          if (hasFailed || !String(all[0]).includes('"writtenAt" = greatest'))
            return Reflect.apply(query, database.pool, all);
          hasFailed = true;
          return Promise.reject(new Error('deadlock detected'));
        }) as never);
      }
      await patch(gateway, alice, '/dtt/templates/1', { name: 'A new name' });
      expect(before).not.toBe('A new name');
      await expect.poll(name).toBe('A new name');
      await release?.();
      const shown = async () =>
        (await ask(other, alice, '{ dttTemplate(databaseId: 1) { name } }')).body.data?.dttTemplate.name;
      await expect.poll(shown).toBe('A new name');
    },
  );

  it('that activates a template upstream, and cannot be written here, is read again', async () => {
    const { gateway, database } = await open();
    await arrive(gateway, alice);
    await database.pool.query(`CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'gone'; END $$;
      CREATE TRIGGER fail BEFORE UPDATE OF "activeTemplateId" ON "User" FOR EACH ROW EXECUTE FUNCTION fail()`);
    const { body } = await activate(gateway, alice, 2);
    await database.pool.query('DROP TRIGGER fail ON "User"; DROP FUNCTION fail()');
    expect(body.errors[0].extensions.code).toBe('INTERNAL_SERVER_ERROR');
    const active = async () =>
      (await ask(gateway, alice, '{ activeDttTemplate { databaseId } }')).body.data?.activeDttTemplate;
    await expect.poll(active).toEqual({ databaseId: 2 });
  });
});

describe('a session that a client has written', () => {
  /** Makes the upstream accept writes to sessions, which change their names and a field that lists do not have. */
  function takeWrites(service: FrontedService['service']) {
    const { sessions } = service.account(1);
    const after: Fault['after'] = (reply, { method, path }) => {
      const id = Number(path.split('/').at(-1));
      const session = sessions.get(id);
      if (method === 'GET' || !session) return reply;
      if (method === 'DELETE') sessions.delete(id);
      else {
        const segments = session.TrainerSegment.map((segment) => ({ ...segment, repsMeasured: 4242 }));
        sessions.set(id, { ...session, name: 'A new name', TrainerSegment: segments });
      }
      return { status: 200, body: { ok: true, data: { id } } };
    };
    service.misbehave({ after }, { path: /^\/dtt\/sessions\/\d+$/ });
  }

  const manySessions = {
    accounts: [{ id: 1, username: 'alice', tokens: [alice], size: { sessions: 150 } }],
  };
  async function list(gateway: TestGateway): Promise<{ databaseId: number; name: string }[]> {
    const page = async (after: string) => {
      const query = `{ dttSessions(first: 100 ${after}) { nodes { databaseId name } pageInfo { endCursor } } }`;
      return (await ask(gateway, alice, query)).body.data.dttSessions;
    };
    const { nodes, pageInfo } = await page('');
    return [...nodes, ...(await page(`after: "${pageInfo.endCursor}"`)).nodes];
  }
  const details = async (gateway: TestGateway, id: number | undefined) => {
    const query = `{ dttSession(databaseId: ${id}) { name segments { repsMeasured } } }`;
    return (await ask(gateway, alice, query)).body.data.dttSession;
  };
  const segments = expect.arrayContaining([{ repsMeasured: 4242 }]);

  it('is shown as written, and not once it was deleted, from the oldest to the newest', async () => {
    const { gateway, service } = await open({ standIn: manySessions });
    await arrive(gateway, alice);
    takeWrites(service);
    for (const place of [149, 0]) {
      const before = await list(gateway);
      const id = before[place]?.databaseId;
      // This fetches its details.
      await details(gateway, id);
      expect((await patch(gateway, alice, `/dtt/sessions/${id}`, { name: 'x' })).status).toBe(200);
      expect((await list(gateway))[place]).toEqual({ databaseId: id, name: 'A new name' });
      expect(await details(gateway, id)).toEqual({ name: 'A new name', segments });
      await rest(gateway, alice, `/dtt/sessions/${id}`, { method: 'DELETE' });
      expect(await list(gateway)).toEqual(before.filter((session) => session.databaseId !== id));
    }
  });
});

it('a web page of a configured origin may send the methods of forwarded requests', async () => {
  const origin = 'https://app.example.com';
  const { gateway } = await open({ settings: { CORS_ORIGINS: origin } });
  const preflight = await fetch(`${gateway.url}/api/v1/dtt/templates/1`, {
    method: 'OPTIONS',
    headers: { Origin: origin, 'Access-Control-Request-Method': 'PATCH' },
  });
  expect(preflight.headers.get('Access-Control-Allow-Methods')).toBe('GET,HEAD,POST,PUT,PATCH,DELETE');
});
