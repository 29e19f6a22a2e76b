/** A gateway and a mirror of it, with a proxy between them that can misbehave. */

import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createToken } from '../../../../src/auth/tokens.ts';
import {
  createUpstream,
  type Timing,
  type Upstream,
} from '../../../../src/extensions/upstream/client/upstream.ts';
import type { SyncReport } from '../../../../src/extensions/upstream/mirror/report.ts';
import type { MirrorService } from '../../../../src/extensions/upstream/mirror/service.ts';
import { type SyncOptions, sync } from '../../../../src/extensions/upstream/mirror/sync.ts';
import { loadDemo } from '../../../support/demo.ts';
import {
  openTestDatabase,
  openTestGateway,
  type TestDatabase,
  type TestGateway,
  type TestGatewayOptions,
} from '../../../support/gateway.ts';
import { listen, shut } from '../../../support/listen.ts';
import { extensionsWith } from './mirrorService.ts';

export const shortTiming: Timing = {
  timeout: 2_000,
  retries: 4,
  delay: 1,
  maxDelay: 10,
  longestPause: 2_000,
};

export interface FaultyProxy {
  readonly base: string;
  /** The method and path of each request, without the query. */
  readonly requests: string[];
  readonly authorizations: (string | undefined)[];
  /** Responds in place of the gateway, unless it returns false. */
  misbehave: (request: IncomingMessage, response: ServerResponse) => boolean;
  /** Changes the data of a successful response. */
  rewrite: (path: string, data: unknown) => unknown;
  close(): void;
}

export const behave = () => false;
export const unchanged = (_path: string, data: unknown) => data;

export async function openProxy(gateway?: Pick<TestGateway, 'url'>): Promise<FaultyProxy> {
  const server = createServer((request, response) => {
    proxy.requests.push(`${request.method} ${pathOf(request)}`);
    proxy.authorizations.push(request.headers.authorization);
    if (proxy.misbehave(request, response)) return;
    forward(request, response).catch(() => response.destroy());
  });
  const proxy: FaultyProxy = {
    base: `${await listen(server)}/api/v1`,
    requests: [],
    authorizations: [],
    misbehave: behave,
    rewrite: unchanged,
    close: () => shut(server),
  };
  return proxy;

  async function forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const forwarded = await fetch(`${gateway?.url}${request.url}`, {
      method: request.method ?? 'GET',
      headers: {
        Authorization: request.headers.authorization ?? '',
        // Compression takes time, and other tests cover it.
        'Accept-Encoding': 'identity',
        ...(chunks.length > 0 && { 'Content-Type': 'application/json' }),
      },
      ...(chunks.length > 0 && { body: Buffer.concat(chunks) }),
    });
    const body = await forwarded.json();
    if (body.ok) body.data = proxy.rewrite(pathOf(request), body.data);
    reply(response, forwarded.status, body);
  }
}

export function reply(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): true {
  response.writeHead(status, { 'Content-Type': 'application/json', ...headers });
  response.end(typeof body === 'string' ? body : JSON.stringify(body));
  return true;
}

/** The path of a request below the base, without its query. */
export function pathOf({ url = '' }: IncomingMessage): string {
  return url.replace('/api/v1', '').split('?', 1)[0] ?? '';
}

export interface Scene {
  /** The gateway that has the original of the account. */
  readonly source: TestGateway;
  readonly sourceToken: string;
  readonly proxy: FaultyProxy;
  readonly upstream: Upstream;
  /** The mirror's database. */
  readonly target: TestDatabase;
  /** Syncs. Fails if another run is under way. */
  sync(options?: Partial<SyncOptions>): Promise<SyncReport>;
  /** Brings the mirror into the state after its first run, which takes place once and is restored afterwards. */
  syncOnce(options?: Partial<SyncOptions>): Promise<void>;
  /** Opens a gateway over the mirror, and creates a token. `renew` and `close` close the gateway. */
  openMirror(mirror?: MirrorService): Promise<{ gateway: TestGateway; token: string }>;
  /** Restores the beginning, which is much faster than opening another scene. */
  renew(): Promise<void>;
  close(): Promise<void>;
}

/** How many sessions the account of a scene has, more than a run writes at once. Each takes a request. */
export const sessionCount = 24;

/**
 * A gateway with the newest sessions of the demo account, which also name a trainer and a template that the account cannot
 * read, and an empty database to mirror it in.
 */
export async function openScene(): Promise<Scene> {
  const database = await openTestDatabase();
  const { client } = database;
  const sourceToken = await loadDemo(database);
  const coach = await client.user.findUniqueOrThrow({ where: { username: 'coach' } });
  await client.dttSession.deleteMany({ where: { id: { gt: sessionCount } } });
  await client.user.updateMany({ where: { username: 'demo' }, data: { dttTotalSessions: sessionCount } });
  await client.dttSession.updateMany({
    where: { trainerId: 2 },
    data: { trainerId: null, goneTrainerId: 2 },
  });
  await client.dttDevice.update({ where: { id: 2 }, data: { ownerId: coach.id } });
  await client.dttTemplate.update({ where: { id: 3 }, data: { ownerId: coach.id } });
  const target = await openTestDatabase();
  const restoreSource = await save(database);
  const restoreTarget = await save(target);
  let restoreMirrored: (() => Promise<void>) | undefined;

  /** Opens a gateway that leaves the database open when it is closed. */
  const openOver = (testDatabase: TestDatabase, options?: TestGatewayOptions) =>
    openTestGateway({ ...testDatabase, close: async () => {} }, options);
  let source = await openOver(database);
  let mirror: TestGateway | undefined;
  const proxy = await openProxy({
    get url() {
      return source.url;
    },
  });
  const createClient = () => createUpstream({ base: proxy.base, token: sourceToken, timing: shortTiming });
  let upstream = createClient();

  async function closeGateways(): Promise<void> {
    await mirror?.close();
    mirror = undefined;
    await source.close();
  }

  const scene: Scene = {
    get source() {
      return source;
    },
    sourceToken,
    proxy,
    get upstream() {
      return upstream;
    },
    target,
    async sync(options) {
      const report = await sync({ pool: target.pool, upstream, ...options });
      if (!report) throw new Error('another run is under way');
      return report;
    },
    async syncOnce(options) {
      if (restoreMirrored) return restoreMirrored();
      await scene.sync(options);
      restoreMirrored = await save(target);
    },
    async openMirror(options) {
      await mirror?.close();
      mirror = await openOver(target, options && { extensions: extensionsWith(() => options) });
      const { token } = await createToken(target.pool, 'demo', `test ${randomUUID()}`);
      return { gateway: mirror, token };
    },
    async renew() {
      await closeGateways();
      await restoreSource();
      await restoreTarget();
      source = await openOver(database);
      upstream = createClient();
      proxy.requests.length = 0;
      proxy.authorizations.length = 0;
      proxy.misbehave = behave;
      proxy.rewrite = unchanged;
    },
    async close() {
      await closeGateways();
      proxy.close();
      await target.close();
      await database.close();
    },
  };
  return scene;
}

/** Saves the content of a database. @returns a function that restores it. */
async function save({ pool }: TestDatabase): Promise<() => Promise<void>> {
  const { rows } = await pool.query<{ name: string }>(
    `SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public' AND tablename <> '_prisma_migrations'`,
  );
  const { rows: sequences } = await pool.query<{ name: string; last: number | null }>(
    `SELECT sequencename AS name, last_value::int AS last FROM pg_sequences WHERE schemaname = 'public'`,
  );
  const schema = `saved_${randomUUID().replaceAll('-', '')}`;
  const copies = rows.map(({ name }) => `CREATE TABLE ${schema}."${name}" AS TABLE public."${name}"`);
  await pool.query(`CREATE SCHEMA ${schema}; ${copies.join(';')}`);
  const restore = [
    'BEGIN',
    // Disables foreign keys and triggers in between.
    'SET LOCAL session_replication_role = replica',
    ...rows.map(({ name }) => `DELETE FROM public."${name}"`),
    ...rows.map(({ name }) => `INSERT INTO public."${name}" SELECT * FROM ${schema}."${name}"`),
    ...sequences.map(({ name, last }) => `SELECT setval('public."${name}"', ${last ?? 1}, ${last !== null})`),
    'COMMIT',
  ].join(';');
  return async () => {
    await pool.query(restore);
  };
}

/** The whole content of the mirror, to compare before and after. */
export async function contents({ client }: TestDatabase): Promise<readonly unknown[]> {
  return Promise.all([
    client.user.findMany({ orderBy: { id: 'asc' } }),
    client.dttDevice.findMany({ orderBy: { id: 'asc' } }),
    client.dttTemplate.findMany({
      omit: { listedDigest: true },
      orderBy: { id: 'asc' },
      include: { segments: true, libraryEntries: true },
    }),
    client.dttSession.findMany({
      omit: { listedDigest: true },
      orderBy: { id: 'asc' },
      include: { segments: { orderBy: { id: 'asc' } } },
    }),
    client.lkbxDevice.findMany({ orderBy: { id: 'asc' } }),
    client.lockTemplate.findMany({ orderBy: { id: 'asc' } }),
    client.lockSession.findMany({
      orderBy: { id: 'asc' },
      include: { segments: { orderBy: { id: 'asc' } } },
    }),
    client.ossmDevice.findMany({ orderBy: { id: 'asc' } }),
  ]);
}
