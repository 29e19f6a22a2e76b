/**
 * A stand-in for the live service. It has the reads and writes of the service's public documentation, and its rate limit, and it can
 * be slow, wrong, empty or gone. All its data is in memory.
 */

import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { listen, shut } from '../../../../support/listen.ts';
import { cut, type Fault } from './faults.ts';
import { type Call, failure, type Reply, read } from './reads.ts';
import { type Account, type AccountOptions, createWorld, type World } from './world.ts';
import { write } from './writes.ts';

export interface StandInOptions {
  readonly accounts: readonly AccountOptions[];
  /** Requests a minute. */
  readonly rate?: number;
  /** A free port by default. */
  readonly port?: number;
  /** The clock for writes. */
  readonly now?: () => Date;
}

interface Where {
  readonly account?: number;
  readonly path?: RegExp;
}

const basePath = '/api/v1';
const maxBody = 256 * 1024;

/** Starts a stand-in, which listens on 127.0.0.1. */
export async function createStandIn(options: StandInOptions) {
  const world = createWorld(options.accounts, options.now ?? (() => new Date()));
  const owners = new Map(options.accounts.flatMap(({ id, tokens }) => tokens.map((token) => [token, id])));
  const revoked = new Set<string>();
  /** All requests, in the order in which they came; their paths are below the base, with the query. */
  const requests: { readonly account: number | undefined; readonly method: string; readonly path: string }[] =
    [];
  const tokensSeen = new Set<string>();
  const limit = createLimit(options.rate ?? 60);
  let set: ({ fault: Fault } & Where)[] = [];

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://stand.in');
    const body = await readBody(request);
    const [, token = ''] = /^Bearer (\S+)$/i.exec(request.headers.authorization ?? '') ?? [];
    const account = world.accounts.get(owners.get(token) ?? 0);
    const isBelow = url.pathname === basePath || url.pathname.startsWith(`${basePath}/`);
    const path = isBelow ? url.pathname.slice(basePath.length) : url.pathname;
    const method = request.method ?? 'GET';
    if (token !== '') tokensSeen.add(token);
    requests.push({ account: account?.id, method, path: path + url.search });
    const active = set.filter(
      (fault) =>
        (fault.account === undefined || fault.account === account?.id) && (fault.path?.test(path) ?? true),
    );
    const call = account && { world, account, method, path, parameters: url.searchParams, body };
    const instead = active.find(({ fault }) => fault.instead)?.fault.instead;
    let reply = instead ? instead() : isBelow ? responseTo(call, token) : failure(404, 'Not found');
    if (!reply) return;
    const asked = { method, path, target: request.url ?? '', account };
    for (const { fault } of active) reply = (await fault.after?.(reply, asked)) ?? reply;
    if (reply === cut) return void response.destroy();
    send(response, method, reply);
  }

  /** What the service responds with where nothing is wrong with it. */
  function responseTo(call: Call | undefined, token: string): Reply {
    if (!call) return failure(401, revoked.has(token) ? 'Token has been revoked' : 'Unauthorized');
    const wait = limit(call.account.id);
    if (wait > 0) return { ...failure(429, 'Rate limit exceeded'), headers: { 'Retry-After': String(wait) } };
    const isRead = call.method === 'GET' || call.method === 'HEAD';
    const reply = isRead ? read(call) : write(call);
    if (reply) return reply;
    return isRead || !read(call) ? failure(404, 'Not found') : failure(405, 'Method not allowed');
  }

  const server = createServer((request, response) => {
    respond(request, response).catch(() => response.destroy());
  });

  return {
    /** The base URL with the version segment, for `UPSTREAM_URL`. */
    base: `${await listen(server, options.port)}${basePath}`,
    /** The data, which a test may read and change. */
    world,
    account: (id: number) => accountOf(world, id),
    addToken(token: string, account: number) {
      owners.set(token, account);
      revoked.delete(token);
    },
    /** Makes the token invalid. */
    revoke(token: string) {
      owners.delete(token);
      revoked.add(token);
    },
    /** Applies the fault to all requests, or to those of an account or a path. Faults for all accounts apply before others. */
    misbehave(fault: Fault, where: Where = {}) {
      set = [...set, { fault, ...where }].sort(
        (a, b) => Number(a.account !== undefined) - Number(b.account !== undefined),
      );
    },
    behave() {
      set = [];
    },
    requests,
    /** Counts the requests, to a path if it is given. */
    count: (path?: string) =>
      requests.filter((entry) => path === undefined || entry.path.split('?', 1)[0] === path).length,
    /** All tokens that requests have sent. */
    tokensSeen,
    forgetRequests() {
      requests.length = 0;
      tokensSeen.clear();
    },
    /** Stops listening, and ends all connections. */
    async stop() {
      if (!server.listening) return;
      const closed = once(server, 'close');
      shut(server);
      await closed;
    },
  };
}

export type StandIn = Awaited<ReturnType<typeof createStandIn>>;

function accountOf(world: World, id: number): Account {
  const account = world.accounts.get(id);
  if (!account) throw new Error(`the stand-in has no account ${id}`);
  return account;
}

/** @returns a function that gives the seconds to wait, or 0 if the request is within the limit. Rejected requests do not count. */
function createLimit(rate: number): (of: string | number) => number {
  const minute = 60_000;
  const sent = new Map<string | number, number[]>();
  return (of) => {
    const now = Date.now();
    const recent = (sent.get(of) ?? []).filter((time) => time > now - minute);
    sent.set(of, recent);
    const [oldest = now] = recent.slice(-rate);
    if (recent.length >= rate) return Math.max(1, Math.ceil((oldest + minute - now) / 1000));
    if (rate !== Number.POSITIVE_INFINITY) recent.push(now);
    return 0;
  };
}

/** The parsed JSON of a body; undefined if it is no JSON. */
async function readBody(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size <= maxBody) chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString());
  } catch {
    return undefined;
  }
}

function send(response: ServerResponse, method: string, { status, body, headers }: Reply): void {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  response.writeHead(status, { 'Content-Type': 'application/json; charset=utf-8', ...headers });
  response.end(method === 'HEAD' ? undefined : text);
}
