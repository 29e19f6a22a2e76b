import { readFile, rm } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { readConfig } from '../src/config.ts';
import { openClient } from '../src/database/client.ts';
import { type Gateway, openGateway } from '../src/gateway.ts';
import { createKeptAnswers } from '../src/kept.ts';
import { createMetrics } from '../src/metrics.ts';
import { type Account, createAccount } from './accounts.ts';
import { createFakeFeed } from './feed.ts';
import { copyTemplate } from './gateway.ts';

let folder: string;
let gateway: Gateway;
let alice: Account;

beforeAll(async () => {
  folder = await copyTemplate();
  gateway = await openGateway(
    readConfig({
      PORT: '0',
      METRICS_PORT: '0',
      LOG_LEVEL: 'silent',
      DATA_DIR: folder,
      // Every request of the test is to be answered, and not to be turned away.
      RATE_LIMIT: '0',
      RATE_LIMIT_STRANGERS: '0',
    }),
  );
  alice = await createAccount(openClient(gateway.database.pool), 'alice');
});
afterAll(async () => {
  await gateway?.close();
  await rm(folder, { recursive: true, force: true });
});

/** The value of each series, by its name and labels. */
async function series(): Promise<ReadonlyMap<string, number>> {
  const response = await fetch(gateway.metricsUrl ?? '');
  expect(response.headers.get('Content-Type')).toMatch(/^text\/plain; version=0\.0\.4/);
  const lines = (await response.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.split(' ').at(-1))]));
}

const requests = (door: string, operation: string, status: number) =>
  `dovetail_requests_total{door="${door}",operation="${operation}",status="${status}"}`;

async function ask(path: string, init: RequestInit = {}): Promise<void> {
  const headers = { Authorization: `Bearer ${alice.token}`, ...init.headers };
  await (await fetch(gateway.url + path, { ...init, headers })).text();
}

const post = (query: string) => ({
  method: 'POST',
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify({ query }),
});

describe('/metrics', () => {
  it('counts requests by door, operation and status, and how long they took', async () => {
    await ask('/api/v1/dtt/2147483647');
    await ask('/api/v1/users/me');
    await ask('/api/v1/users/me');
    await ask('/graphql', post('{ viewer { id } }'));
    await ask('/healthz');
    await vi.waitFor(async () => {
      const found = await series();
      expect(found.get(requests('rest', 'GET /dtt/{id}', 404))).toBe(1);
      expect(found.get(requests('rest', 'GET /users/me', 200))).toBe(2);
      expect(found.get(requests('graphql', 'query viewer', 200))).toBe(1);
      expect(found.get(requests('page', '/healthz', 200))).toBe(1);
      const taken = 'dovetail_request_duration_seconds';
      expect(found.get(`${taken}_count{door="rest",operation="GET /users/me"}`)).toBe(2);
      expect(found.get(`${taken}_sum{door="rest",operation="GET /users/me"}`)).toBeGreaterThan(0);
    });
  });

  it('tells of the database, the answers in memory, the change feed, the process and the release', async () => {
    await ask('/api/v1/lkbx');
    await ask('/api/v1/lkbx');
    const found = await series();
    const value = (name: string) => found.get(name) ?? Number.NaN;
    expect(value('dovetail_kept_reads_total{result="hit"}')).toBeGreaterThan(0);
    expect(value('dovetail_kept_reads_total{result="miss"}')).toBeGreaterThan(0);
    expect(value('dovetail_kept_answers')).toBeGreaterThan(0);
    expect(value('dovetail_kept_bytes')).toBeGreaterThan(1_000);
    expect(value('dovetail_database_connections')).toBeGreaterThan(0);
    expect(value('dovetail_database_waiting')).toBe(0);
    expect(value('dovetail_feed_listening')).toBe(1);
    expect(value('dovetail_feed_reconnects_total')).toBe(0);
    expect(value('process_resident_memory_bytes')).toBeGreaterThan(1e7);
    expect([...found.keys()]).toContainEqual(
      expect.stringMatching(/^dovetail_build_info{version="\d.*",node="v\d/),
    );
  });

  it('tells how often announcements were heard again, the same each time it is asked', async () => {
    const { feed } = createFakeFeed();
    const metrics = createMetrics({
      pool: gateway.database.pool,
      kept: createKeptAnswers(feed, { maxBytes: 0, maxAge: 1 }),
      feed: { ...feed, reconnects: 2 },
    });
    for (let time = 0; time < 2; time++)
      expect(await metrics.print()).toMatch(/^dovetail_feed_reconnects_total 2$/m);
  });

  it('tells subscriptions that are open from requests in flight', async () => {
    const leave = new AbortController();
    const init = post('subscription { activeDttTemplate { name } }');
    const response = await fetch(`${gateway.url}/graphql`, {
      ...init,
      headers: { ...init.headers, Accept: 'text/event-stream', Authorization: `Bearer ${alice.token}` },
      signal: leave.signal,
    });
    await response.body?.getReader().read();
    const open = await series();
    expect(open.get('dovetail_subscriptions')).toBe(1);
    expect(open.get('dovetail_requests_in_flight')).toBe(0);
    leave.abort();
    await vi.waitFor(async () => {
      const closed = await series();
      expect(closed.get('dovetail_subscriptions')).toBe(0);
      expect(closed.get(requests('graphql', 'subscription activeDttTemplate', 200))).toBe(1);
      expect([...closed.keys()].filter((name) => name.includes('seconds') && /subscr/.test(name))).toEqual(
        [],
      );
    });
  });

  it('has no more series after a thousand requests that want to add some', async () => {
    /** A request of each kind that carries something of its own. */
    const hostile = (tag: string) => [
      ask(`/${tag}`),
      ask(`/api/v1/${tag}`),
      ask(`/api/v1/dtt/${tag}`),
      ask(`/api/v1/dtt?limit=${tag}`),
      ask('/api/v1/dtt', { headers: { Authorization: `Bearer ${tag}` } }),
      ask('/graphql', post(`query ${tag} { ${tag}: viewer { id } }`)),
      ask('/graphql', post(`{ ${tag} }`)),
      ask('/graphql', post(`query ${tag} { ...${tag} } fragment ${tag} on Query { viewer { id } }`)),
      ask(`/graphql?query={viewer{id}}&operationName=${tag}`),
      ask('/healthz', { headers: { 'X-Request-Id': tag, 'User-Agent': tag, Host: tag } }),
    ];
    const settled = async () => (await series()).get('dovetail_requests_in_flight');
    const count = async () => {
      await vi.waitFor(async () => expect(await settled()).toBe(0));
      return [...(await series()).keys()].filter((name) => name.startsWith('dovetail_')).sort();
    };
    // Twice, since a document that comes again goes another way.
    await Promise.all(hostile('a'));
    await Promise.all(hostile('a'));
    const before = await count();
    for (let round = 0; round < 100; round++) await Promise.all(hostile(`x${round}`));
    expect(await count()).toEqual(before);
  });

  it('has every metric and every label that the dashboard asks for', async () => {
    const dashboard = await readFile('ops/grafana.json', 'utf8');
    const names = new Set(dashboard.match(/\b(dovetail|process|nodejs)_\w+/g));
    expect(names.size).toBeGreaterThan(10);
    const found = [...(await series()).keys()];
    for (const name of names) {
      expect(found).toContainEqual(expect.stringMatching(new RegExp(`^${name}({|$)`)));
    }
    // What is grouped by, and what is filtered by; Prometheus adds the instance.
    const labels = dashboard.matchAll(/by \(([\w, ]+)\)|[{,](\w+)[!=]=?~?\\"/g);
    const asked = [...labels].flatMap(([, grouped, filtered]) => (grouped ?? filtered ?? '').split(', '));
    expect(new Set(asked)).toEqual(new Set(['door', 'operation', 'status', 'le', 'result', 'instance']));
  });

  it('is on a port of its own, where nothing else is, and not on the one for clients', async () => {
    expect((await fetch(`${gateway.url}/metrics`)).status).toBe(404);
    expect((await fetch(new URL('/healthz', gateway.metricsUrl))).status).toBe(404);
  });
});
