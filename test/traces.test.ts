import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readConfig } from '../src/config.ts';
import { type Gateway, openGateway } from '../src/gateway.ts';
import { copyTemplate } from './gateway.ts';

/** What OTLP says of a span, as JSON. */
interface Span {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  status: { code?: number };
  attributes: { key: string; value: { stringValue?: string; intValue?: number } }[];
}

/** Serves with traces to the endpoint while the test asks, and closes. */
async function trace(endpoint: string, ask: (gateway: Gateway) => Promise<void>): Promise<void> {
  const gateway = await openGateway(
    readConfig({ PORT: '0', LOG_LEVEL: 'silent', DATA_DIR: folder, OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }),
  );
  try {
    await ask(gateway);
  } finally {
    await gateway.close();
  }
}

let folder: string;
beforeAll(async () => {
  folder = await copyTemplate();
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const attributesOf = ({ attributes }: Span) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue]));

describe('a traced gateway', () => {
  let spans: Span[];
  let delivered = '';
  let token: string;
  const upstream = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' };

  beforeAll(async () => {
    const paths: (string | undefined)[] = [];
    const collector = createServer(async (request, response) => {
      paths.push(request.url);
      delivered += Buffer.concat(await request.toArray()).toString();
      delivered += '\n';
      response.writeHead(200, { 'Content-Type': 'application/json' }).end('{}');
    });
    await once(collector.listen(0, '127.0.0.1'), 'listening');
    const { port } = collector.address() as AddressInfo;

    await trace(`http://127.0.0.1:${port}/`, async ({ url, demoToken, database }) => {
      token = demoToken ?? '';
      const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
      const post = async (query: string, variables = {}) => {
        const body = JSON.stringify({ query, variables });
        await (await fetch(`${url}/graphql`, { method: 'POST', headers, body })).text();
      };
      const traceparent = `00-${upstream.traceId}-${upstream.spanId}-01`;
      await (await fetch(`${url}/api/v1/dtt/sessions/4711`, { headers: { ...headers, traceparent } })).text();
      const query = 'query Hidden($id: Int!) { mine: dttSession(databaseId: $id) { name } }';
      // The first time Yoga executes it, the second time it is compiled, the third time it is in memory.
      for (let time = 0; time < 3; time++) await post(query, { id: 4712 });
      await post('{ hidden }');
      await fetch(`${url}/hidden?hidden=1`, { method: 'PROPFIND' });
      await database.pool.query('ALTER TABLE "OssmDevice" RENAME TO "Away"');
      await (await fetch(`${url}/api/v1/ossm`, { headers })).text();
      await database.pool.query('ALTER TABLE "Away" RENAME TO "OssmDevice"');
    });
    collector.close();
    collector.closeAllConnections();
    expect(new Set(paths)).toEqual(new Set(['/v1/traces']));
    spans = delivered
      .trim()
      .split('\n')
      .flatMap((text) => JSON.parse(text).resourceSpans)
      .flatMap(({ scopeSpans }: { scopeSpans: { spans: Span[] }[] }) => scopeSpans)
      .flatMap((scope) => scope.spans);
  });

  const below = ({ spanId }: Span) => spans.filter(({ parentSpanId }) => parentSpanId === spanId);

  it('goes on with the trace of a request, down to its statements', () => {
    const root = spans.find(({ parentSpanId }) => parentSpanId === upstream.spanId);
    if (!root) throw new Error('the trace was not continued');
    expect(root.traceId).toBe(upstream.traceId);
    expect(root.name).toBe('GET /api/v1/dtt/sessions/{id}');
    expect(attributesOf(root)).toEqual({
      'http.request.method': 'GET',
      'http.route': '/api/v1/dtt/sessions/{id}',
      'http.response.status_code': 404,
      'dovetail.request': expect.any(String),
    });
    const operation = below(root).find(({ name }) => name === 'query dttSession');
    if (!operation) throw new Error('the operation has no span');
    expect(below(operation).map(attributesOf)).toContainEqual({
      'db.system.name': 'postgresql',
      'db.operation.name': 'SELECT',
      'db.query.text': expect.stringMatching(/^SELECT .*FROM "DttSession" .*\$1/),
    });
  });

  it('says how a GraphQL operation was answered: executed twice, and then from memory', () => {
    const requests = spans.filter(({ name }) => name === 'POST /graphql');
    expect(requests).toHaveLength(4);
    const executed = requests.map((request) => below(request).map(({ name }) => name));
    expect(executed.filter((names) => names.includes('query dttSession'))).toHaveLength(2);
  });

  it('marks the requests that failed here as errors, and no others', () => {
    const failed = 2;
    const requests = spans.filter((span) => 'dovetail.request' in attributesOf(span));
    expect(requests.filter(({ status }) => status.code === failed).map(({ name }) => name)).toEqual([
      'GET /api/v1/ossm',
    ]);
  });

  it('says nothing that a client wrote', () => {
    expect(delivered).toContain('"service.name"');
    expect(delivered).not.toContain(token);
    expect(delivered).not.toMatch(/hidden|propfind|471[12]/i);
    expect(spans.map(({ name }) => name)).toContain('_OTHER');
  });
});

it('closes soon when nobody collects its traces', async () => {
  let began = 0;
  // Taken, and never answered.
  const silent = createServer(() => {});
  await once(silent.listen(0, '127.0.0.1'), 'listening');
  const { port } = silent.address() as AddressInfo;
  await trace(`http://127.0.0.1:${port}`, async ({ url }) => {
    await fetch(`${url}/healthz`);
    began = performance.now();
  });
  expect(performance.now() - began).toBeLessThan(5_000);
  silent.close();
  silent.closeAllConnections();
});
