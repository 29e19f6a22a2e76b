import { rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { operationSpans, requestSpans, statementSpans } from '../../../src/channels.ts';
import { startTraces } from '../../../src/extensions/tracing/traces.ts';
import { openGateway } from '../../../src/server/gateway.ts';
import { release } from '../../../src/version.ts';
import { newExchange } from '../../support/exchanges.ts';
import { copyTemplate } from '../../support/gateway.ts';
import { listen, shut } from '../../support/listen.ts';
import { readConfig } from '../../support/settings.ts';

/** A span in the JSON of OTLP. */
interface Span {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  status: { code?: number; message?: string };
  attributes: { key: string; value: { stringValue?: string; intValue?: number } }[];
}

/** Opens a gateway with traces to the endpoint, runs the requests of the test, and closes it. */
async function trace(
  endpoint: string,
  ask: (gateway: Awaited<ReturnType<typeof openGateway>>) => Promise<void>,
): Promise<void> {
  const gateway = await openGateway(
    readConfig({ PORT: '0', LOG_LEVEL: 'silent', DATA_DIR: folder, OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }),
  );
  try {
    await ask(gateway);
  } finally {
    await gateway.close();
  }
}

const folder = await copyTemplate();
afterAll(() => rm(folder, { recursive: true, force: true }));

/** The kinds of spans by their numbers in OTLP. */
const kinds = { internal: 1, server: 2, client: 3 };

const attributesOf = ({ attributes }: Span) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue]));

describe('a traced gateway', () => {
  let spans: Span[];
  let resources: Span['attributes'][];
  let delivered = '';
  let token: string;
  const upstream = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' };
  const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

  beforeAll(async () => {
    vi.stubEnv('OTEL_RESOURCE_ATTRIBUTES', 'deployment.environment.name=test');
    const paths: (string | undefined)[] = [];
    const collector = createServer(async (request, response) => {
      paths.push(request.url);
      delivered += Buffer.concat(await request.toArray()).toString();
      delivered += '\n';
      response.writeHead(200, { 'Content-Type': 'application/json' }).end('{}');
    });
    await trace(`${await listen(collector)}/`, async ({ url, shownToken, database }) => {
      token = shownToken ?? '';
      const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
      const post = async (query: string, variables = {}) => {
        const body = JSON.stringify({ query, variables });
        await (await fetch(`${url}/graphql`, { method: 'POST', headers, body })).text();
      };
      const traceparent = `00-${upstream.traceId}-${upstream.spanId}-01`;
      await (
        await fetch(`${url}/api/v1/dtt/sessions/471147114`, { headers: { ...headers, traceparent } })
      ).text();
      const query = 'query Hidden($id: Int!) { mine: dttSession(databaseId: $id) { name } }';
      // The first time graphql-js executes it, the second time it is compiled, the third time its response is cached.
      for (const other of [0, 1, 1]) await post(query, { id: 471247124, other });
      await post('{ hidden }');
      await fetch(`${url}/hidden?hidden=1`, { method: 'PROPFIND' });
      for (const method of methods) await (await fetch(`${url}/healthz`, { method })).text();
      await database.pool.query('ALTER TABLE "OssmDevice" RENAME TO "Away"');
      await (await fetch(`${url}/api/v1/ossm`, { headers })).text();
      await database.pool.query('ALTER TABLE "Away" RENAME TO "OssmDevice"');
    });
    vi.unstubAllEnvs();
    shut(collector);
    expect(new Set(paths)).toEqual(new Set(['/v1/traces']));
    const delivery = delivered
      .trim()
      .split('\n')
      .flatMap((text) => JSON.parse(text).resourceSpans);
    resources = delivery.map(({ resource }) => resource.attributes);
    spans = delivery
      .flatMap(({ scopeSpans }: { scopeSpans: { spans: Span[] }[] }) => scopeSpans)
      .flatMap((scope) => scope.spans);
  });

  const below = ({ spanId }: Span) => spans.filter(({ parentSpanId }) => parentSpanId === spanId);

  it('continues the trace of a request, down to its statements', () => {
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
    expect(root.kind).toBe(kinds.server);
    const operation = below(root).find(({ name }) => name === 'query dttSession');
    if (!operation) throw new Error('the operation has no span');
    expect(operation.kind).toBe(kinds.internal);
    expect(attributesOf(operation)).toEqual({ 'graphql.operation.type': 'query' });
    const [statement] = below(operation);
    expect(statement).toMatchObject({ name: 'SELECT', kind: kinds.client, traceId: upstream.traceId });
    expect(below(operation).map(attributesOf)).toContainEqual({
      'db.system.name': 'postgresql',
      'db.operation.name': 'SELECT',
      'db.query.text': expect.stringMatching(/^SELECT .*FROM "DttSession" .*\$1/),
    });
  });

  it('has a span for each execution of a GraphQL operation, and none for a cached response', () => {
    const requests = spans.filter(({ name }) => name === 'POST /graphql');
    expect(requests).toHaveLength(4);
    const executed = requests.map((request) => below(request).map(({ name }) => name));
    expect(executed.filter((names) => names.includes('query dttSession'))).toHaveLength(2);
  });

  it('marks requests with an internal error as errors, and no others', () => {
    const failed = 2;
    const requests = spans.filter((span) => 'dovetail.request' in attributesOf(span));
    expect(requests.filter(({ status }) => status.code === failed).map(({ name }) => name)).toEqual([
      'GET /api/v1/ossm',
    ]);
    const broken = spans.filter((span) => span.status.code === failed).map(({ name }) => name);
    expect(new Set(broken)).toEqual(new Set(['GET /api/v1/ossm', 'SELECT']));
    // The message of an error may contain personal data.
    expect(spans.filter(({ status }) => status.message)).toEqual([]);
  });

  it('names the service and its version as the resource, with the attributes of OTEL_RESOURCE_ATTRIBUTES', () => {
    const [resource] = resources;
    const attributes = Object.fromEntries(resource?.map(({ key, value }) => [key, value.stringValue]) ?? []);
    expect(attributes).toMatchObject({
      'service.name': 'dovetail',
      'service.version': release,
      'deployment.environment.name': 'test',
    });
  });

  it('has no text from a client in any span', () => {
    expect(delivered).toContain('"service.name"');
    expect(delivered).not.toContain(token);
    expect(delivered).not.toMatch(/hidden|propfind|471[12]471/i);
    const named = spans.flatMap((span) => attributesOf(span)['http.request.method'] ?? []);
    expect(new Set(named)).toEqual(new Set([...methods, '_OTHER']));
  });
});

it('a traced gateway closes within 5 s although the collector does not respond', async () => {
  let began = 0;
  // Accepts requests, and never responds.
  const silent = createServer(() => {});
  await trace(await listen(silent), async ({ url }) => {
    await fetch(`${url}/healthz`);
    began = performance.now();
  });
  expect(performance.now() - began).toBeLessThan(8_000);
  shut(silent);
});

it('the log has one line a minute when traces are not delivered, with the reason; closing unsubscribes from all channels', async () => {
  let deliveries = 0;
  const targets = new Set<string | undefined>();
  let delivered = '';
  const collector = createServer(async (request, response) => {
    delivered += Buffer.concat(await request.toArray()).toString();
    deliveries++;
    targets.add(request.url);
    response.writeHead(400, { 'Content-Type': 'application/json' }).end('{}');
  });
  const { host } = new URL(await listen(collector));
  const endpoint = `http://me:secret@${host}/in?key=secret`;
  const lines: string[] = [];
  const logger = pino({ level: 'info' }, { write: (line: string) => lines.push(line) });
  vi.stubEnv('OTEL_BSP_SCHEDULE_DELAY', '1');
  vi.stubEnv('OTEL_SERVICE_NAME', 'gate');
  const traces = startTraces(endpoint, logger);
  vi.unstubAllEnvs();
  const isTraced = () =>
    [requestSpans, operationSpans, statementSpans].map(({ start }) => start.hasSubscribers);
  expect(isTraced()).toEqual([true, true, true]);
  // Each is sent when the one before it has failed.
  for (let time = 0; time < 3; time++) {
    const exchange = newExchange();
    const before = deliveries;
    await requestSpans.tracePromise(async () => exchange.response.emit('close'), { exchange });
    await expect.poll(() => deliveries).toBe(before + 1);
  }
  await traces.close();
  expect(isTraced()).toEqual([false, false, false]);
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { level: 40, msg: 'traces not delivered', reason: expect.stringMatching(/Bad Request|400/) },
  ]);
  expect(lines.join()).toContain(`"endpoint":"http://me:***@${host}/in?***"`);
  expect(targets).toEqual(new Set(['/in?key=secret']));
  expect(delivered).not.toContain('http.response.status_code');
  // The name that the environment gives takes precedence.
  expect(delivered).toContain('{"key":"service.name","value":{"stringValue":"gate"}}');
  shut(collector);
});
