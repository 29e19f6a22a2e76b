/** A mirror shows what its upstream does, and follows its changes. */

import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { createUpstream } from '../../../../src/extensions/upstream/client/upstream.ts';
import { createAccount } from '../../../support/accounts.ts';
import { graphqlOnce, graphqlOnEveryPath, postJson, type TestGateway } from '../../../support/gateway.ts';
import { stillMirror } from '../support/mirrorService.ts';
import { expectSameReads, shortReads } from '../support/reads.ts';
import { contents, openScene, pathOf, reply, sessionCount, shortTiming } from '../support/upstream.ts';

const scene = await openScene();
beforeEach(() => scene.renew());
afterAll(() => scene.close());

/** Opens a gateway with the mirror, which is not refreshed and sends activations to the upstream. */
async function openMirror() {
  return scene.openMirror(stillMirror(scene.target.pool, scene.upstream));
}

const expectEqual = (mirror: { gateway: TestGateway; token: string }) =>
  expectSameReads(scene, mirror, shortReads);

describe('a mirror', () => {
  it.each([
    ['two templates are marked as active', 2, { isActive: true }, 0],
    ['the active template is not valid', 1, { isActive: 'yes' }, 1],
  ])('has the same template active as before if %s in the list', async (_name, id, change, skipped) => {
    await scene.syncOnce();
    scene.proxy.rewrite = (path, data) => {
      if (path !== '/dtt/templates') return data;
      const list = data as { data: { id: number }[] };
      return { ...list, data: list.data.map((item) => (item.id === id ? { ...item, ...change } : item)) };
    };
    expect((await scene.sync()).countsByKind.get('DTT templates')).toMatchObject({ updated: 0, skipped });
    expect(await scene.target.client.user.findUnique({ where: { id: 1 } })).toMatchObject({
      activeTemplateId: 1,
    });
  });

  it('leaves the template of a lock session as it is if two responses about the active one differ', async () => {
    await scene.syncOnce();
    let requestCount = 0;
    scene.proxy.misbehave = (request, response) =>
      pathOf(request) === '/lkbx/templates/active' &&
      reply(response, 200, { ok: true, data: ++requestCount === 1 ? { id: 2 } : null });
    await scene.sync();
    expect(requestCount).toBe(2);
    expect(await scene.target.client.lockSession.findUnique({ where: { id: 1 } })).toMatchObject({
      templateId: 1,
    });
  });

  it('loses a template that was deleted upstream, even if another one is not valid', async () => {
    await scene.syncOnce();
    const { client } = scene.source.database;
    scene.proxy.rewrite = (path, data) => {
      const odd = (item: { id: number }) => (item.id === 2 ? { ...item, bubbleId: 7.5, name: [] } : item);
      if (path === '/dtt/templates/2') return odd(data as { id: number });
      if (path !== '/dtt/templates') return data;
      return { data: (data as { data: { id: number }[] }).data.map(odd) };
    };
    await client.dttTemplate.delete({ where: { id: 1 } });
    const report = await scene.sync();
    expect(report.countsByKind.get('DTT templates')).toMatchObject({ gone: 1, skipped: 1 });
    expect(await scene.target.client.dttTemplate.count({ where: { id: 1 } })).toBe(0);
  });

  it('loses a session that was deleted upstream, and reads up to four at once in a full run', async () => {
    await scene.syncOnce();
    await scene.source.database.client.dttSession.delete({ where: { id: sessionCount } });
    await scene.source.database.client.trainerSegment.updateMany({ data: { strokeLength: 1 } });
    await scene.sync();
    expect(await scene.target.client.dttSession.count()).toBe(sessionCount - 1);
    let underWay = 0;
    let most = 0;
    scene.proxy.misbehave = (_request, response) => {
      most = Math.max(most, ++underWay);
      response.on('close', () => underWay--);
      return false;
    };
    const report = await scene.sync({ full: true });
    expect(report.countsByKind.get('details of DTT sessions')).toMatchObject({
      updated: sessionCount - 1,
      gone: 0,
    });
    // Several at once, but not so many that they burden the upstream.
    expect(most).toBeGreaterThan(1);
    expect(most).toBeLessThanOrEqual(4);
    await expectEqual(await openMirror());
  });

  it('assigns new ids after those that came from the upstream', async () => {
    await scene.syncOnce();
    const { client } = scene.target;
    const { id } = await client.dttSession.create({ data: { bubbleId: 'x', ownerId: 1, trainerId: 1 } });
    expect(id).toBe(sessionCount + 1);
    await client.dttDevice.create({ data: { bubbleId: 'x', ownerId: 1 } });
    await client.user.create({ data: { username: 'x' } });
  });

  it('fails on a database with an account that is not mirrored, and changes nothing there', async () => {
    await createAccount(scene.target.client, 'alice');
    const before = await contents(scene.target);
    await expect(scene.sync()).rejects.toThrow(/holds the account "alice".*set DATA_DIR to an empty folder/);
    expect(await contents(scene.target)).toEqual(before);
  });

  it('fails for a second upstream, and is not changed', async () => {
    await scene.syncOnce();
    const before = await contents(scene.target);
    const elsewhere = createUpstream({
      base: `${scene.source.url}/api/v1`,
      token: scene.sourceToken,
      timing: shortTiming,
    });
    await expect(scene.sync({ upstream: elsewhere })).rejects.toThrow(/The database mirrors http/);
    expect(await contents(scene.target)).toEqual(before);
  });
});

describe('an activation on a mirror', () => {
  it('takes effect upstream and in the mirror, through either API', async () => {
    await scene.syncOnce();
    const mirror = await openMirror();
    const { body } = await postJson(mirror.gateway, mirror.token, '/dtt/templates/2', { isActive: true });
    expect(body).toMatchObject({ ok: true, data: { id: 2, isActive: true, scheduleTypeChanged: true } });
    await expectEqual(mirror);
    const { data } = await graphqlOnEveryPath(
      mirror.gateway,
      mirror.token,
      'mutation { activateTemplate(template: { databaseId: 1 }) { scheduleTypeChanged template { isActive } } }',
    );
    expect(data.activateTemplate).toEqual({ scheduleTypeChanged: false, template: { isActive: true } });
    await expectEqual(mirror);
  });

  it('adds its template if the mirror does not have it yet', async () => {
    await scene.syncOnce();
    const { id } = await scene.source.database.client.dttTemplate.create({
      data: { bubbleId: 'new', ownerId: 1, name: 'New', targetDepth: 1, targetWindow: 1 },
    });
    const mirror = await openMirror();
    const { status } = await postJson(mirror.gateway, mirror.token, `/dtt/templates/${id}`, {
      isActive: true,
    });
    expect(status).toBe(200);
    const query = `{ activeDttTemplate { databaseId name } }`;
    const { data } = await graphqlOnEveryPath(mirror.gateway, mirror.token, query);
    expect(data).toEqual({ activeDttTemplate: { databaseId: id, name: 'New' } });
  });

  it('says whether the schedule type changed, and null if a response that may have said so was lost or unusable', async () => {
    await scene.syncOnce();
    const mirror = await openMirror();
    const activate = async () =>
      (
        await graphqlOnce(
          mirror.gateway,
          mirror.token,
          'mutation { activateTemplate(template: { databaseId: 2 }) { scheduleTypeChanged } }',
        )
      ).data.activateTemplate;
    for (const [losses, from, expected] of [
      [1, 'auto', null],
      [1, 'single', null],
      [0, 'auto', true],
      [0, 'single', false],
    ] as const) {
      await scene.source.database.client.user.update({ where: { id: 1 }, data: { scheduleType: from } });
      let lost = 0;
      scene.proxy.misbehave = (request, response) => {
        if (request.method !== 'POST' || lost === losses) return false;
        lost++;
        const headers = { Authorization: `Bearer ${scene.sourceToken}`, 'Content-Type': 'application/json' };
        const body = '{"isActive":true}';
        fetch(`${scene.source.url}${request.url}`, { method: 'POST', headers, body }).then(() =>
          response.destroy(),
        );
        return true;
      };
      expect(await activate(), `${losses} ${from}`).toEqual({ scheduleTypeChanged: expected });
    }
    // A successful response may have other data than expected.
    scene.proxy.misbehave = ({ method }, response) =>
      method === 'POST' && reply(response, 200, { ok: true, data: 7 });
    expect(await activate()).toEqual({ scheduleTypeChanged: null });
  });
});
