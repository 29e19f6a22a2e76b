/** A gateway that refreshes a mirror, and what it reports and logs about that. */

import { pino } from 'pino';
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createToken } from '../../../../src/auth/tokens.ts';
import { createSql } from '../../../../src/database/reader/sql.ts';
import { type MirrorService, openMirrorService } from '../../../../src/extensions/upstream/mirror/service.ts';
import { type Gateway, openGateway } from '../../../../src/server/gateway.ts';
import { createFakeFeed } from '../../../support/feed.ts';
import { readConfig } from '../../../support/settings.ts';
import { ask } from '../support/frontedService.ts';
import { openScene, pathOf, reply, shortTiming } from '../support/upstream.ts';

let gateway: Gateway | undefined;

const scene = await openScene();
beforeEach(() => scene.renew());
afterEach(async () => {
  await gateway?.close();
  gateway = undefined;
});
afterAll(() => scene.close());

const settings = (more: Record<string, string> = {}) =>
  readConfig({
    PORT: '0',
    DATABASE_URL: scene.target.pool.options.connectionString ?? '',
    LOG_LEVEL: 'silent',
    UPSTREAM_URL: scene.proxy.base,
    UPSTREAM_TOKEN: scene.sourceToken,
    UPSTREAM_RATE: '0',
    UPSTREAM_INTERVAL: '1',
    ...more,
  });

async function statusOf({ url }: Gateway): Promise<string> {
  const response = await fetch(`${url}/readyz`);
  expect(response.status).toBe(200);
  return response.text();
}

const mutation = 'mutation { activateTemplate(template: { databaseId: 2 }) { template { databaseId } } }';

describe('a gateway with an upstream', () => {
  it('mirrors the account instead of loading the demo account, and refreshes it at each interval', async () => {
    /** The milliseconds from the beginning of each run to that of the next. */
    const intervals: number[] = [];
    let last = Number.NEGATIVE_INFINITY;
    scene.proxy.misbehave = (request) => {
      const now = performance.now();
      if (pathOf(request) !== '/dtt') return false;
      intervals.push(now - last);
      last = now;
      return false;
    };
    const opened = await openGateway(settings());
    gateway = opened;
    expect(opened.shownToken).toBeUndefined();
    await vi.waitFor(async () => expect(await statusOf(opened)).toMatch(/last success 2/), {
      timeout: 20_000,
    });
    const { token } = await createToken(opened.database.pool, 'demo', 'test');
    const name = async () =>
      (await ask(opened, token, '{ viewer { profileTitle } }')).body.data.viewer.profileTitle;
    expect(await name()).toBe('Explorer');
    await scene.source.database.client.user.update({ where: { id: 1 }, data: { profileTitle: 'Changed' } });
    await vi.waitFor(async () => expect(await name()).toBe('Changed'), { timeout: 20_000 });
    expect(intervals.length).toBeGreaterThan(1);
    // A request may be late, and the next one not.
    expect(Math.min(...intervals)).toBeGreaterThan(200);
  });

  it('stays ready when the upstream rejects the token, and reports that in /readyz', async () => {
    // With a slash at the end of its address, it is still the upstream of this mirror.
    await scene.syncOnce();
    scene.proxy.misbehave = (_request, response) =>
      reply(response, 401, { ok: false, error: 'Unauthorized' });
    const opened = await openGateway(settings({ UPSTREAM_URL: `${scene.proxy.base}/` }));
    gateway = opened;
    await vi.waitFor(
      async () =>
        expect(await statusOf(opened)).toMatch(
          /^ready\nupstream: last success never, last error 2\S+ rejected the token\n$/,
        ),
      { timeout: 20_000 },
    );
  });

  it('rejects an activation when the upstream throttles it, instead of waiting as a run does', async () => {
    await scene.syncOnce();
    gateway = await openGateway(settings());
    // A run has begun: the upstream has accepted the token.
    await expect.poll(() => scene.proxy.requests, { timeout: 20_000 }).toContain('GET /dtt');
    const { token } = await createToken(scene.target.pool, 'demo', 'test');
    scene.proxy.misbehave = ({ method }, response) =>
      method === 'POST' && reply(response, 429, { ok: false, error: 'Too many' }, { 'Retry-After': '2' });
    const { body } = await ask(gateway, token, mutation);
    expect(body.errors).toMatchObject([{ extensions: { code: 'SERVICE_UNAVAILABLE', retryAfter: 2 } }]);
    expect(scene.proxy.requests.filter((line) => line.startsWith('POST'))).toHaveLength(1);
  });

  it('lets the first requests wait for the check of its token, instead of saying that the upstream is unusable', async () => {
    await scene.syncOnce();
    scene.proxy.misbehave = (request, response) => {
      if (pathOf(request) !== '/users/me') return false;
      setTimeout(() => reply(response, 200, { ok: true, data: { id: 1, username: 'demo' } }), 500);
      return true;
    };
    const opened = await openGateway(settings());
    gateway = opened;
    const { token } = await createToken(scene.target.pool, 'demo', 'test');
    const headers = { Authorization: `Bearer ${token}` };
    const [{ body }, { status }] = await Promise.all([
      ask(opened, token, mutation),
      fetch(`${opened.url}/api/v1/dtt`, { headers }),
    ]);
    expect(body).toMatchObject({ data: { activateTemplate: { template: { databaseId: 2 } } } });
    expect(status).toBe(200);
  });

  it('closes at once in the middle of a run', async () => {
    scene.proxy.misbehave = () => true;
    const opened = await openGateway(settings());
    await expect.poll(() => scene.proxy.requests).not.toEqual([]);
    const start = Date.now();
    await opened.close();
    expect(Date.now() - start).toBeLessThan(10_000);
  });
});

describe('the refresh of a mirror', () => {
  /** The lines that it logs, each with its level and without the fields that every line has. */
  const lines: [level: string | undefined, line: object][] = [];
  let service: MirrorService | undefined;
  /** @param interval in seconds. */
  const start = async (interval = 0.005) => {
    lines.length = 0;
    const write = (text: string) => {
      const { level, time: _time, pid: _pid, hostname: _hostname, ...line } = JSON.parse(text);
      lines.push([pino.levels.labels[level], line]);
    };
    const logger = pino({ level: 'debug' }, { write });
    const { pool } = scene.target;
    const config = {
      UPSTREAM_URL: scene.proxy.base,
      UPSTREAM_TOKEN: scene.sourceToken,
      UPSTREAM_RATE: 0,
      ...settings(),
      DATABASE_URL: undefined,
      DATA_DIR: 'mirror',
      UPSTREAM_INTERVAL: interval,
    };
    service = await openMirrorService(config, {
      pool,
      sql: createSql(pool),
      feed: createFakeFeed().feed,
      logger,
      onChanged: () => {},
      timing: shortTiming,
    });
    if (!service) throw new Error('there is no mirror');
    return service;
  };
  afterEach(async () => {
    await service?.close();
    service = undefined;
  });

  it.each([
    ['rejects a list', /^\/dtt\/sessions$/, 403, '/dtt/sessions'],
    ['fails at a record', /^\/dtt\/sessions\/\d+$/, 503, '/dtt/sessions/{id}'],
  ])('logs no id and no words of an upstream that %s', async (_, path, status, route) => {
    scene.proxy.misbehave = (request, response) =>
      path.test(pathOf(request)) &&
      reply(response, status, { ok: false, error: 'carol@example.com may not read session 4711' });
    // At a short interval, the next run of lists would interrupt the one that reads details.
    const { status: statusNow } = await start(60);
    await expect.poll(statusNow).toMatch(/last error 2/);
    const failure = `responded with ${status}`;
    expect(statusNow()).toMatch(new RegExp(`^last success (never|2\\S+Z), last error 2\\S+Z ${failure}$`));
    expect(lines).toContainEqual([
      'error',
      { failure, method: 'GET', route, status, msg: 'mirror not refreshed' },
    ]);
    expect(JSON.stringify(lines)).not.toMatch(/carol|4711|demo|offset/);
  });
});
