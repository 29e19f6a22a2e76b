import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { createToken } from '../../src/auth/token.ts';
import { readConfig, SetupError } from '../../src/config.ts';
import { openClient } from '../../src/database/client.ts';
import { type Gateway, openGateway } from '../../src/gateway.ts';
import { createAccount } from '../accounts.ts';
import { openScene, reply, type Scene } from './upstream.ts';

let scene: Scene;
let gateway: Gateway | undefined;

beforeAll(async () => {
  scene = await openScene();
});
beforeEach(() => scene.renew());
afterEach(async () => {
  await gateway?.close();
  gateway = undefined;
});
afterAll(() => scene?.close());

const settings = (more: Record<string, string> = {}) =>
  readConfig({
    PORT: '0',
    DATABASE_URL: scene.target.pool.options.connectionString ?? '',
    LOG_LEVEL: 'silent',
    UPSTREAM_URL: scene.proxy.base,
    UPSTREAM_TOKEN: scene.sourceToken,
    UPSTREAM_INTERVAL: '1',
    ...more,
  });

async function statusOf({ url }: Gateway): Promise<string> {
  const response = await fetch(`${url}/readyz`);
  expect(response.status).toBe(200);
  return response.text();
}

describe('a gateway with an upstream', () => {
  it('mirrors the account instead of loading the demo account, and keeps it fresh', async () => {
    const opened = await openGateway(settings());
    gateway = opened;
    expect(opened.demoToken).toBeUndefined();
    await vi.waitFor(async () => expect(await statusOf(opened)).toMatch(/last success 2/), {
      timeout: 20_000,
    });
    const { token } = await createToken(openClient(opened.database.pool), 'demo', 'test');
    const name = async () => {
      const response = await fetch(`${opened.url}/api/v1/users/me`, {
        headers: { Authorization: `Bearer ${token}` },
      });
      return (await response.json()).data.profileTitle;
    };
    expect(await name()).toBe('Explorer');
    await scene.source.database.client.user.update({ where: { id: 1 }, data: { profileTitle: 'Changed' } });
    await vi.waitFor(async () => expect(await name()).toBe('Changed'), { timeout: 20_000 });
  });

  it('goes on without its upstream, and says so', async () => {
    scene.proxy.misbehave = (_request, response) =>
      reply(response, 401, { ok: false, error: 'Unauthorized' });
    const opened = await openGateway(settings());
    gateway = opened;
    await vi.waitFor(
      async () =>
        expect(await statusOf(opened)).toMatch(
          /^ready\nupstream: last success never, last error 2\S+ GET \/users\/me: the upstream does not accept the token\n$/,
        ),
      { timeout: 20_000 },
    );
  });

  it('closes in the middle of a run', async () => {
    scene.proxy.misbehave = () => true;
    const opened = await openGateway(settings());
    await vi.waitFor(() => expect(scene.proxy.requests).not.toEqual([]));
    const start = Date.now();
    await opened.close();
    expect(Date.now() - start).toBeLessThan(3000);
  });

  it('does not start without a token, or on a database that holds another account', async () => {
    await expect(openGateway(settings({ UPSTREAM_TOKEN: '' }))).rejects.toThrow(
      new SetupError(`UPSTREAM_TOKEN is not set: it takes the API token for ${scene.proxy.base}.`),
    );
    await createAccount(scene.target.client, 'alice');
    await expect(openGateway(settings())).rejects.toThrow(/holds the account "alice".*set DATA_DIR/);
  });

  it('never shows its token', () => {
    expect(() => settings({ UPSTREAM_TOKEN: 'my secret' })).toThrow(
      new SetupError('UPSTREAM_TOKEN is not valid, but takes a token: visible ASCII characters.'),
    );
  });
});
