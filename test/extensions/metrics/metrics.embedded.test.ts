import { readFile, rm } from 'node:fs/promises';
import { AggregatorRegistry, Registry } from 'prom-client';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { openClient } from '../../../src/database/client.ts';
import { createMetrics, type MetricsOptions, serveMetrics } from '../../../src/extensions/metrics/metrics.ts';
import type { Exchange } from '../../../src/http/exchange.ts';
import { openGateway } from '../../../src/server/gateway.ts';
import { metricsIn } from '../../docs/markdown.ts';
import { createAccount } from '../../support/accounts.ts';
import { createFakeFeed } from '../../support/feed.ts';
import { copyTemplate } from '../../support/gateway.ts';
import { openRaw } from '../../support/rawHttp.ts';
import { readConfig } from '../../support/settings.ts';

const folder = await copyTemplate();
const gateway = await openGateway(
  readConfig({
    PORT: '0',
    METRICS_PORT: '0',
    LOG_LEVEL: 'silent',
    DATA_DIR: folder,
    // No request of the test may be rejected.
    RATE_LIMIT: '0',
    RATE_LIMIT_ANONYMOUS: '0',
  }),
);
const alice = await createAccount(openClient(gateway.database.pool), 'alice');
let closing: Promise<void> | undefined;
afterAll(async () => {
  await (closing ?? gateway?.close());
  await rm(folder, { recursive: true, force: true });
});

/** Where the metrics are, as the text of a start says. */
const metricsUrl = () => gateway.lines?.find(([name]) => name === 'Metrics')?.[1] ?? '';

/** The status and the text of a probe on the port of the metrics. */
async function probe(path: string) {
  const response = await fetch(new URL(path, metricsUrl()));
  return [response.status, await response.text()];
}

/** The value of each series, by its name and labels. */
async function series(): Promise<ReadonlyMap<string, number>> {
  const response = await fetch(metricsUrl());
  expect(response.headers.get('Content-Type')).toMatch(/^text\/plain; version=0\.0\.4/);
  const lines = (await response.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.split(' ').at(-1))]));
}

async function ask(path: string, init: RequestInit = {}): Promise<void> {
  const headers = { Authorization: `Bearer ${alice.token}`, ...init.headers };
  await (await fetch(gateway.url + path, { ...init, headers })).text();
}

const post = (query: string) => ({
  method: 'POST',
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify({ query }),
});

/** What the metrics read. */
const parts: MetricsOptions = {
  // No more of these two is used.
  pool: { totalCount: 7, idleCount: 6, waitingCount: 5 } as unknown as MetricsOptions['pool'],
  responseCache: {
    counters: { hits: 11, misses: 12, shared: 13, overtaken: 14 },
    usage: () => ({ entries: 15, bytes: 16 }),
  } as unknown as MetricsOptions['responseCache'],
  feed: { ...createFakeFeed().feed, listening: false, reconnects: 2 },
  // No more of it is used.
  turns: { figures: { waiting: 18, rejected: 19 } } as unknown as MetricsOptions['turns'],
  metrics: [],
};

describe('/metrics', () => {
  it('has the metrics that docs/operations.md lists, with their types and descriptions', async () => {
    const text = await createMetrics(parts).print();
    const expected = [...text.matchAll(/^# HELP (dovetail_\w+) (.*)\n# TYPE \w+ (\w+)$/gm)].map(
      ([, name, help, kind]) => ({ name, kind, help }),
    );
    const rows = metricsIn('docs/operations.md');
    expect(new Set(rows)).toEqual(new Set(expected));
    expect(rows.length).toBe(expected.length);
  });

  it('has exactly these metrics, with the same values in each scrape', async () => {
    const metrics = createMetrics(parts);
    const given = [
      { endpoint: 'rest', operation: 'GET /dtt' },
      { endpoint: 'page' },
      { endpoint: 'graphql', operation: 'subscription devices' },
      { endpoint: 'graphql', operation: 'websocket' },
    ] as Exchange[];
    for (const exchange of given) metrics.began(exchange);
    const read = async () =>
      (await metrics.print()).split('\n').filter((line) => /^dovetail_(?!build_info)/.test(line));
    const constant = `
      database_connections 7
      database_connections_idle 6
      database_waiting 5
      feed_listening 0
      feed_logical 0
      feed_reconnects_total 2
      requests_turned_away_total 19
      requests_waiting 18
      response_cache_bytes 16
      response_cache_entries 15
      response_cache_reads_total{result="hit"} 11
      response_cache_reads_total{result="miss"} 12
      response_cache_reads_total{result="overtaken"} 14
      response_cache_reads_total{result="shared"} 13`;
    const expectLines = async (found: readonly string[], ...others: string[]) => {
      const expected = [...constant.trim().split(/\n */), ...others].map((line) => `dovetail_${line}`);
      expect(found.toSorted()).toEqual(expected.toSorted());
    };
    for (let time = 0; time < 2; time++)
      await expectLines(await read(), 'connections 1', 'requests_in_flight 2', 'subscriptions 1');

    const ends = [
      [0, 250],
      [2, 60_000],
      [1, 1],
      [3, 60_000],
    ] as const;
    for (const [index, duration] of ends) {
      const exchange = given[index];
      if (exchange) metrics.ended({ exchange, status: index === 1 ? undefined : 200, duration });
    }
    const isOfDuration = (line: string) => line.includes('request_duration');
    const lines = await read();
    await expectLines(
      lines.filter((line) => !isOfDuration(line)),
      'connections 0',
      'requests_in_flight 0',
      'subscriptions 0',
      'requests_total{endpoint="graphql",operation="subscription devices",status="200"} 1',
      'requests_total{endpoint="graphql",operation="websocket",status="200"} 1',
      'requests_total{endpoint="page",operation="",status="left"} 1',
      'requests_total{endpoint="rest",operation="GET /dtt",status="200"} 1',
    );
    const durations = lines.filter(isOfDuration);
    const [name, labels] = ['dovetail_request_duration_seconds', 'endpoint="rest",operation="GET /dtt"'];
    const bucket = (le: string, count: number) => `${name}_bucket{le="${le}",${labels}} ${count}`;
    expect(durations).toEqual(
      expect.arrayContaining([
        `${name}_sum{${labels}} 0.25`,
        `${name}_count{${labels}} 1`,
        ...[bucket('0.1', 0), bucket('0.25', 1), bucket('10', 1), bucket('+Inf', 1)],
      ]),
    );
    expect(durations.filter((line) => /subscription|websocket/.test(line))).toEqual([]);
  });

  it('has the sums of all workers, and of each state the lowest', async () => {
    const print = vi.spyOn(Registry.prototype, 'metrics');
    const metrics: MetricsOptions['metrics'] = [
      { name: 'up', help: 'Whether it is up', read: () => [['a', 1]], label: 'server', aggregator: 'min' },
    ];
    const feed = { ...parts.feed, listening: true, mode: 'logical' } as const;
    await createMetrics({ ...parts, feed, metrics }).print();
    const [registry] = print.mock.contexts;
    print.mockRestore();
    if (!(registry instanceof Registry)) throw new Error('nothing was printed');
    const ofWorker = await registry.getMetricsAsJSON();
    const text = await AggregatorRegistry.aggregate([ofWorker, ofWorker]).metrics();
    expect(text.match(/(?<=^dovetail_)(build_info|database_w|feed_l|up).*/gm)).toEqual([
      ...['database_waiting 10', 'feed_listening 1', 'feed_logical 1', 'up{server="a"} 1'],
      expect.stringMatching(/^build_info\{.*\} 1$/),
    ]);
  });

  it('counts no request any more whose client has left, also if it was sent behind another on the same connection', async () => {
    const { body } = post('subscription { activeDttTemplate { name } }');
    const head = `POST /graphql HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${alice.token}\r\n`;
    const subscription = `${head}Accept: text/event-stream\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    const followed = subscription.replace('POST /graphql', 'GET /api/v1/dtt');
    const unknown = 'GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n';
    const { socket } = await openRaw(gateway.url);
    socket.write(followed + subscription.repeat(2) + unknown);
    const open = async () => {
      const found = await series();
      return [found.get('dovetail_subscriptions'), found.get('dovetail_requests_in_flight')];
    };
    // The requests behind the first subscription wait for its end.
    await expect.poll(open).toEqual([1, 3]);
    socket.destroy();
    await expect.poll(open).toEqual([0, 0]);
  });

  it('has no more series after many requests with names of their own', async () => {
    /** A request of each kind that can carry a text of the client. */
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
      await expect.poll(settled).toBe(0);
      return [...(await series()).keys()].filter((name) => name.startsWith('dovetail_')).sort();
    };
    // Twice, since a document is compiled the second time.
    await Promise.all(hostile('a'));
    await Promise.all(hostile('a'));
    const before = await count();
    for (let round = 0; round < 10; round++) await Promise.all(hostile(`x${round}`));
    expect(await count()).toEqual(before);
  });

  it('has every metric and every label that the dashboard queries', async () => {
    const dashboard = await readFile('ops/grafana.json', 'utf8');
    // Metrics of standbys and of a mirror exist only if there are any.
    const names = new Set(
      dashboard.match(/\b(dovetail_(?!mirror|upstream|standby|database_reads)|process_|nodejs_)\w+/g),
    );
    expect(names.size).toBeGreaterThan(10);
    const found = [...(await series()).keys()];
    for (const name of names) {
      expect(found).toContainEqual(expect.stringMatching(new RegExp(`^${name}({|$)`)));
    }
    // The labels that are grouped by, and those that are filtered by; Prometheus adds the instance.
    const labels = dashboard.matchAll(/by \(([\w, ]+)\)|[{,](\w+)[!=]=?~?\\"/g);
    const queried = [...labels].flatMap(([, grouped, filtered]) => (grouped ?? filtered ?? '').split(', '));
    expect(new Set(queried)).toEqual(
      new Set(['endpoint', 'operation', 'status', 'le', 'result', 'instance', 'server']),
    );
  });

  it('is on a port of its own, with the probes and without other pages, and not on the port for clients', async () => {
    expect((await fetch(`${gateway.url}/metrics`)).status).toBe(404);
    expect(await probe('/healthz')).toEqual([200, 'alive\n']);
    expect(await probe('/readyz')).toEqual([200, 'ready\n']);
    const elsewhere = await fetch(new URL('/docs', metricsUrl()));
    expect(elsewhere.status).toBe(404);
    expect(elsewhere.headers.get('Content-Type')).toBe('text/plain');
    expect(await elsewhere.text()).toBe('Not found. Try /metrics, /healthz or /readyz.\n');
    expect((await fetch(`${metricsUrl()}?name=up`)).status).toBe(200);
  });
});

it('a gateway that is about to close takes requests until then, while its probes on both ports say that it is not ready', async () => {
  closing = gateway.close(1_000);
  expect((await fetch(`${gateway.url}/readyz`)).status).toBe(503);
  expect(await probe('/readyz')).toEqual([503, 'stopping\n']);
  expect(await probe('/healthz')).toEqual([200, 'alive\n']);
  const headers = { Authorization: `Bearer ${alice.token}` };
  expect((await fetch(`${gateway.url}/api/v1/users/me`, { headers })).status).toBe(200);
});

it('metrics are served until the last connection of a gateway that closes is ended', async () => {
  const { socket, received, ended } = await openRaw(gateway.url);
  socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
  await expect.poll(received).toContain('200 OK');
  await expect.poll(() => fetch(gateway.url).then(Boolean, () => false)).toBe(false);
  expect((await series()).get('dovetail_requests_in_flight')).toBe(0);
  await ended();
});

describe('serveMetrics', () => {
  const settings = { HOST: '127.0.0.1' };

  it('responds 503 while there are no metrics, and 200 once there are', async () => {
    const prints = [() => Promise.reject(new Error('a worker has died')), async () => 'up 1\n'];
    const print = () => prints.shift()?.() ?? Promise.resolve('');
    const { lines, close } = await serveMetrics(settings, 0, () => undefined, print);
    const url = lines[0]?.[1] ?? '';
    expect((await fetch(new URL('/readyz', url))).status).toBe(503);
    // It does not keep the server from closing.
    const { socket, ended } = await openRaw(url);
    socket.write('GET /metrics HTTP/1.1\r\n');
    expect(await fetch(url).then(({ status }) => status)).toBe(503);
    expect(await fetch(url).then((response) => response.text())).toBe('up 1\n');
    const began = performance.now();
    await Promise.all([close(), ended()]);
    expect(performance.now() - began).toBeLessThan(5_000);
    await expect(fetch(url)).rejects.toThrow();
  });
});
