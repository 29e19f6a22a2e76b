/** Activations by clients that send tokens of the upstream. */

import { describe, expect, it } from 'vitest';
import { createToken, revokeToken } from '../../../../src/auth/tokens.ts';
import { messages } from '../../../../src/extensions/upstream/messages.ts';
import type { TestGateway } from '../../../support/gateway.ts';
import {
  activate as activateTemplate,
  arrive,
  ask,
  type FrontedService,
  openForEachTest,
} from '../support/frontedService.ts';
import { failure, type Reply, success } from '../support/standIn/reads.ts';

const alice = 'token-of-alice';

const open = openForEachTest();

const activate = async (gateway: TestGateway, id: number, token = alice) =>
  (await activateTemplate(gateway, token, id, 'template { databaseId isActive }')).body;

/** The requests for activations. */
const posts = ({ service }: Pick<FrontedService, 'service'>) =>
  service.requests.filter(({ method }) => method === 'POST');

/** Has activations respond with this after they were carried out. */
const respondWith = ({ service }: FrontedService, given: Reply) =>
  service.misbehave({ after: (reply, { method }) => (method === 'POST' ? given : reply) });

/** What Alice sees of her templates. */
async function library({ gateway }: FrontedService) {
  const query = '{ activeDttTemplate { databaseId } dttTemplates { nodes { databaseId name isActive } } }';
  return (await ask(gateway, alice, query)).body.data;
}

const activeIn = async (fronted: FrontedService) =>
  (await library(fronted)).activeDttTemplate?.databaseId ?? null;

/** Makes a template that Alice has imported her own. */
function becomeOwn(service: FrontedService['service']): number {
  const [id = 0] = service.account(1).imports;
  service.account(1).imports.delete(id);
  service.account(2).ownTemplates.delete(id);
  service.account(1).ownTemplates.add(id);
  Object.assign(service.world.templates.get(id) ?? {}, { ownerId: 1 });
  return id;
}

describe('an activation', () => {
  it('succeeds for a template that is an import in the mirror, and the account’s own upstream by now', async () => {
    const fronted = await open();
    const { gateway, service } = fronted;
    await arrive(gateway, alice);
    // All of its details are in the mirror.
    const { body } = await ask(gateway, alice, '{ dttTemplates { nodes { segments { type } } } }');
    expect(body.errors).toBeUndefined();
    const id = becomeOwn(service);
    expect(await activate(gateway, id)).toEqual({
      data: { activateTemplate: { template: { databaseId: id, isActive: true } } },
    });
    expect([service.account(1).activeTemplateId, await activeIn(fronted)]).toEqual([id, id]);
  });

  it('of an imported template is rejected without a request upstream; of an own one it returns segments that are not here yet', async () => {
    const fronted = await open();
    const { gateway, database, service } = fronted;
    await arrive(gateway, alice);
    const [imported = 0] = service.account(1).imports;
    const before = await library(fronted);
    const message = 'Template not found or not owned by user';
    expect((await activate(gateway, imported)).errors).toMatchObject([
      { message, extensions: { code: 'NOT_FOUND' } },
    ]);
    expect(posts(fronted)).toEqual([]);
    expect(await library(fronted)).toEqual(before);
    const [id = 0] = service.account(1).ownTemplates;
    await database.pool.query(`DELETE FROM "DttTemplateSegment" WHERE "templateId" = ${id}`);
    await database.pool.query(`UPDATE "DttTemplate" SET "detailsPending" = true WHERE id = ${id}`);
    const { data } = (await activateTemplate(gateway, alice, id, 'template { segments { type } }')).body;
    expect(data.activateTemplate.template.segments).not.toHaveLength(0);
  });

  it('is not sent with a token that was revoked while the account was read for it', async () => {
    const { gateway, service, database } = await open({ settings: { UPSTREAM_TOKEN: alice } });
    await expect.poll(() => database.client.mirroredAccount.count()).toBe(1);
    const { id, token } = await createToken(database.pool, 'alice', 'own');
    await arrive(gateway, token);
    const template = becomeOwn(service);
    let isRevoked = false;
    service.misbehave({
      async after(reply) {
        if (isRevoked) return reply;
        isRevoked = true;
        await revokeToken(database.pool, id);
        await expect.poll(async () => (await ask(gateway, token, '{ viewer { id } }')).status).toBe(401);
        return reply;
      },
    });
    expect((await activate(gateway, template, token)).errors).toMatchObject([
      { extensions: { code: 'UNAUTHENTICATED' } },
    ]);
    expect(posts({ service })).toEqual([]);
  });

  it('of another account is not sent with UPSTREAM_TOKEN', async () => {
    const { gateway, service, database } = await open({ settings: { UPSTREAM_TOKEN: alice } });
    await expect.poll(() => database.client.mirroredAccount.count()).toBe(1);
    const id = 99;
    // It lives upstream as well, and its lists are here.
    const mirrored = { create: { refreshedAt: new Date() } };
    const user = { id, username: 'another', subscriptionTier: 'ultra', mirrored };
    await database.client.user.create({ data: user });
    const own = { id, ownerId: id, bubbleId: 'own', name: 'own', targetDepth: 1, targetWindow: 1 };
    await database.client.dttTemplate.create({ data: own });
    const { token } = await createToken(database.pool, 'another', 'own');
    expect((await activate(gateway, id, token)).errors).toMatchObject([
      { extensions: { code: 'BAD_GATEWAY' } },
    ]);
    expect(posts({ service })).toEqual([]);
  });

  it('says whether the schedule type changed, and null if a successful response does not say so', async () => {
    const fronted = await open();
    const { gateway } = fronted;
    await arrive(gateway, alice);
    const shown = async () =>
      (await activateTemplate(gateway, alice, 2, 'scheduleTypeChanged')).body.data.activateTemplate;
    // The first activation ends the schedule.
    for (const scheduleTypeChanged of [true, false]) expect(await shown()).toEqual({ scheduleTypeChanged });
    respondWith(fronted, success(7));
    expect(await shown()).toEqual({ scheduleTypeChanged: null });
  });

  it('is not sent again after a while that the upstream asks for, as a run is', async () => {
    const fronted = await open();
    await arrive(fronted.gateway, alice);
    respondWith(fronted, { ...failure(429, 'busy'), headers: { 'Retry-After': '2' } });
    const [id = 0] = fronted.service.account(1).ownTemplates;
    expect((await activate(fronted.gateway, id)).errors).toMatchObject([
      { message: messages.upstreamBusy, extensions: { code: 'SERVICE_UNAVAILABLE', retryAfter: 2 } },
    ]);
    expect(posts(fronted)).toHaveLength(1);
  });

  it('that the upstream made, though it responded with an error, is read back before the response, and not repeated', async () => {
    const fronted = await open();
    const { gateway, service } = fronted;
    await arrive(gateway, alice);
    const account = service.account(1);
    const [id = 0] = [...account.ownTemplates].filter((own) => own !== account.activeTemplateId);
    respondWith(fronted, failure(500, 'broken'));
    service.forgetRequests();
    expect((await activate(gateway, id)).errors).toMatchObject([
      { message: messages.upstreamAway, extensions: { code: 'BAD_GATEWAY' } },
    ]);
    const failed = { failure: 'responded with 500', status: 500, route: '/dtt/templates/{id}' };
    const lines = gateway.log.map((line) => JSON.parse(line));
    expect(lines).toContainEqual(expect.objectContaining({ ...failed, msg: 'activation failed' }));
    expect([account.activeTemplateId, await activeIn(fronted)]).toEqual([id, id]);
    expect([posts(fronted).length, service.count('/dtt/sessions')]).toEqual([1, 0]);
  });

  it('that was rejected, or could not be sent, fails, changes nothing and does not make the account outdated', async () => {
    const fronted = await open();
    const { gateway, service } = fronted;
    await arrive(gateway, alice);
    const before = await library(fronted);
    const id = [...service.account(1).ownTemplates].at(-1) ?? 0;
    // This reads the details, which the activation need not fetch then.
    const { body } = await ask(gateway, alice, '{ dttTemplates { nodes { segments { type } } } }');
    expect(body.errors).toBeUndefined();
    for (const [status, said, message, code] of [
      [429, 'busy', messages.upstreamAway, 'BAD_GATEWAY'],
      [400, 'Odd', messages.upstreamUnusable, 'BAD_GATEWAY'],
      [400, 'Template not found', 'Template not found or not owned by user', 'NOT_FOUND'],
    ] as const) {
      service.behave();
      service.misbehave({ instead: () => failure(status, said) });
      expect((await activate(gateway, id)).errors).toMatchObject([{ message, extensions: { code } }]);
      expect(await library(fronted)).toEqual(before);
    }
    await service.stop();
    // Of a template that is not here, only the upstream could say that it is missing.
    const message = 'The upstream cannot be reached; nothing was changed here';
    const error = { message, extensions: { code: 'BAD_GATEWAY' } };
    for (const each of [id, 4711]) expect((await activate(gateway, each)).errors).toMatchObject([error]);
    expect(await library(fronted)).toEqual(before);
  });
});

it('the tokens of a mirrored account are those of the service: none is made here, and one of the gateway’s own may only read', async () => {
  const fronted = await open();
  const { gateway, database, service } = fronted;
  await arrive(gateway, alice);
  const { body } = await ask(gateway, alice, '{ viewer { apiTokens { id } currentToken { id } } }');
  expect(body).toEqual({ data: { viewer: { apiTokens: [], currentToken: null } } });
  const create = 'mutation { createApiToken(name: "x") { secret } }';
  expect((await ask(gateway, alice, create)).body.errors).toEqual([
    {
      message: 'The tokens of this account are made by the service where it lives, and not here',
      extensions: { code: 'FORBIDDEN' },
    },
  ]);
  expect(await database.client.apiToken.count()).toBe(0);
  const { token } = await createToken(database.pool, 'alice', 'reader', { scope: 'read' });
  const [id = 0] = service.account(1).ownTemplates;
  const before = await library(fronted);
  expect((await activate(gateway, id, token)).errors).toMatchObject([
    { message: 'Forbidden: this needs a token with the scope activate' },
  ]);
  expect(posts(fronted)).toEqual([]);
  expect(await library(fronted)).toEqual(before);
});
