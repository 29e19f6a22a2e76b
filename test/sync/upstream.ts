/** A mirror of a gateway for a test, with a proxy between the two that can misbehave. */

import { once } from 'node:events';
import { mkdtemp } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createToken } from '../../src/auth/token.ts';
import { prepareDemo } from '../../src/database/demo.ts';
import type { ServerOptions } from '../../src/server.ts';
import { type SyncOptions, type SyncReport, sync } from '../../src/sync/sync.ts';
import { createUpstream, type Timing, type Upstream } from '../../src/sync/upstream.ts';
import { openTestDatabase, openTestGateway, type TestDatabase, type TestGateway } from '../gateway.ts';

export const shortTiming: Timing = { timeout: 500, retries: 4, delay: 1, maxDelay: 10, patience: 2_000 };

export interface FaultyProxy {
  readonly base: string;
  /** The method and path of each request, without the query. */
  readonly requests: string[];
  readonly authorizations: (string | undefined)[];
  /** Answers in place of the gateway, unless it answers false. */
  misbehave: (request: IncomingMessage, response: ServerResponse) => boolean;
  /** Changes the data of a good answer on its way. */
  rewrite: (path: string, data: unknown) => unknown;
  close(): Promise<void>;
}

export const behave = () => false;

export async function openProxy(gateway?: TestGateway): Promise<FaultyProxy> {
  const server = createServer((request, response) => {
    proxy.requests.push(`${request.method} ${pathOf(request)}`);
    proxy.authorizations.push(request.headers.authorization);
    if (proxy.misbehave(request, response)) return;
    forward(request, response).catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const proxy: FaultyProxy = {
    base: `http://127.0.0.1:${port}/api/v1`,
    requests: [],
    authorizations: [],
    misbehave: behave,
    rewrite: (_path, data) => data,
    async close() {
      server.close();
      server.closeAllConnections();
    },
  };
  return proxy;

  async function forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const answer = await fetch(`${gateway?.url}${request.url}`, {
      method: request.method ?? 'GET',
      headers: {
        Authorization: request.headers.authorization ?? '',
        ...(chunks.length > 0 && { 'Content-Type': 'application/json' }),
      },
      ...(chunks.length > 0 && { body: Buffer.concat(chunks) }),
    });
    const body = await answer.json();
    if (body.ok) body.data = proxy.rewrite(pathOf(request), body.data);
    reply(response, answer.status, body);
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
  /** Where the account lives. */
  readonly source: TestGateway;
  readonly sourceToken: string;
  readonly proxy: FaultyProxy;
  readonly upstream: Upstream;
  /** The mirror's database. */
  readonly target: TestDatabase;
  /** Syncs, and insists that no other run is under way. */
  sync(options?: Partial<SyncOptions>): Promise<SyncReport>;
  /** Opens the mirror as a gateway, with a token for it. Closing the scene closes it. */
  openMirror(mirror?: ServerOptions['mirror']): Promise<{ gateway: TestGateway; token: string }>;
  close(): Promise<void>;
}

/**
 * A gateway with the demo account, whose sessions also name a trainer and a template that the account cannot
 * read, and an empty database to mirror it in.
 */
export async function openScene(): Promise<Scene> {
  const source = await openTestGateway();
  const { client } = source.database;
  const sourceToken = await prepareDemo(source.database, await mkdtemp(join(tmpdir(), 'dovetail-test-')));
  if (sourceToken === undefined) throw new Error('the demo account has no token');
  const coach = await client.user.findUniqueOrThrow({ where: { username: 'coach' } });
  await client.dttDevice.update({ where: { id: 2 }, data: { ownerId: coach.id } });
  await client.dttTemplate.update({ where: { id: 3 }, data: { ownerId: coach.id } });

  const proxy = await openProxy(source);
  const upstream = createUpstream({ base: proxy.base, token: sourceToken, timing: shortTiming });
  const target = await openTestDatabase();
  let gateway: TestGateway | undefined;
  return {
    source,
    sourceToken,
    proxy,
    upstream,
    target,
    async sync(options) {
      const report = await sync({ pool: target.pool, upstream, ...options });
      if (!report) throw new Error('another run is under way');
      return report;
    },
    async openMirror(mirror) {
      gateway = await openTestGateway(target, { mirror });
      const { token } = await createToken(target.client, 'demo', 'test');
      return { gateway, token };
    },
    async close() {
      await (gateway ?? target).close();
      await proxy.close();
      await source.close();
    },
  };
}

/** Everything in the mirror, for comparing before and after. */
export async function contents({ client }: TestDatabase): Promise<unknown> {
  return Promise.all([
    client.user.findMany({ orderBy: { id: 'asc' } }),
    client.dttDevice.findMany({ orderBy: { id: 'asc' } }),
    client.dttTemplate.findMany({ orderBy: { id: 'asc' }, include: { segments: true, imports: true } }),
    client.dttSession.findMany({
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
