/**
 * Traces for OpenTelemetry, with spans for each request, its operations and its statements. Loaded only if
 * traces are sent. Spans contain no text of clients: no targets, no variables and no values of statements.
 * To replace it: subscribe to the same channels.
 */

import { AsyncLocalStorage } from 'node:async_hooks';
import type { TracingChannel } from 'node:diagnostics_channel';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  defaultTextMapGetter,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { setGlobalErrorHandler, W3CTraceContextPropagator } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import type { Logger } from 'pino';
import { operationSpans, requestSpans, statementSpans, type TracedRequest } from '../../channels.ts';
import { errorText, withoutPassword } from '../../errors.ts';
import { restPath } from '../../http/exchange.ts';
import { release } from '../../version.ts';

/** How long, in milliseconds, the delivery of the last spans may take when the gateway closes. */
const lastDelivery = 2_000;

/** The shortest time, in milliseconds, between two log lines about lost spans: a batch is sent every few seconds. */
const tellEvery = 60_000;

/** The methods that a span may name. Any other is text of the client's. */
const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/**
 * Traces every request of this process from now on. Attributes have the names of OpenTelemetry's semantic conventions. The
 * SDK reads more `OTEL_…` variables, which docs/operations.md lists.
 * @param endpoint of a collector that accepts OTLP over HTTP, such as `http://localhost:4318/v1/traces`.
 */
export function startTraces(endpoint: string, logger: Logger) {
  const provider = createProvider(endpoint, logger);
  const tracer = provider.getTracer('dovetail', release);
  /** The span of the code that is running. */
  const current = new AsyncLocalStorage<Span | undefined>();

  /** Starts a span within that of a request. Returns nothing outside of requests. */
  function startWithin(name: string, kind: SpanKind, attributes: Record<string, string>): Span | undefined {
    const parent = current.getStore();
    return parent && tracer.startSpan(name, { kind, attributes }, trace.setSpan(ROOT_CONTEXT, parent));
  }

  const undo = [
    traceChannel(requestSpans, current, ({ exchange }) => startRequest(tracer, exchange)),
    traceChannel(operationSpans, current, ({ label }) => {
      const [type = ''] = label.split(' ', 1);
      return startWithin(label, SpanKind.INTERNAL, { 'graphql.operation.type': type });
    }),
    traceChannel(statementSpans, current, ({ text }) => {
      const [operation = ''] = text.trimStart().split(/\s/, 1);
      return startWithin(operation, SpanKind.CLIENT, {
        'db.system.name': 'postgresql',
        'db.operation.name': operation,
        'db.query.text': text,
      });
    }),
  ];

  return {
    /** Stops tracing, and delivers the last spans unless that takes too long. */
    async close(): Promise<void> {
      for (const stop of undo) stop();
      // The collector may be unreachable.
      await Promise.race([
        provider.shutdown().catch(() => {}),
        sleep(lastDelivery, undefined, { ref: false }),
      ]);
    },
  };
}

function createProvider(endpoint: string, logger: Logger): BasicTracerProvider {
  let toldAt = Number.NEGATIVE_INFINITY;
  setGlobalErrorHandler((error) => {
    if (performance.now() - toldAt < tellEvery) return;
    logger.warn({ reason: errorText(error), endpoint: withoutPassword(endpoint) }, 'traces not delivered');
    toldAt = performance.now();
  });
  const exporter = new OTLPTraceExporter({ url: endpoint });
  return new BasicTracerProvider({
    resource: resourceFromAttributes({ 'service.name': 'dovetail', 'service.version': release }).merge(
      detectResources({ detectors: [envDetector] }),
    ),
    spanProcessors: [new BatchSpanProcessor(exporter)],
  });
}

const propagator = new W3CTraceContextPropagator();

function startRequest(tracer: Tracer, exchange: TracedRequest): Span {
  const { request, response } = exchange;
  const { method = '' } = request;
  const parent = propagator.extract(ROOT_CONTEXT, request.headers, defaultTextMapGetter);
  const known = methods.has(method) ? method : '_OTHER';
  const attributes = { 'http.request.method': known, 'dovetail.request': exchange.id };
  const span = tracer.startSpan(known, { kind: SpanKind.SERVER, attributes }, parent);
  response.once('close', () => {
    const route = routeOf(exchange);
    if (route !== undefined) span.updateName(`${known} ${route}`).setAttribute('http.route', route);
    if (response.headersSent) span.setAttribute('http.response.status_code', response.statusCode);
    if (response.statusCode >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
    span.end();
  });
  return span;
}

/**
 * Starts a span with each operation that the channel announces, and ends it with the operation.
 * @returns a function that stops this.
 */
function traceChannel<Message extends object>(
  channel: TracingChannel<unknown, Message>,
  current: AsyncLocalStorage<Span | undefined>,
  begin: (message: Message) => Span | undefined,
): () => void {
  const spans = new WeakMap<object, Span>();
  channel.start.bindStore(current, (message) => {
    const span = begin(message);
    if (span) spans.set(message, span);
    // Without a span of its own, the code belongs to the surrounding span.
    return span ?? current.getStore();
  });
  const listeners = {
    start() {},
    end() {},
    asyncStart() {},
    asyncEnd(message: object) {
      // The span of a request ends with its response: a stream goes on after its handler has returned.
      if (!('exchange' in message)) spans.get(message)?.end();
    },
    error(message: { error: unknown }) {
      // The message is left out: it may contain values, such as those that violate a constraint.
      spans.get(message)?.setStatus({ code: SpanStatusCode.ERROR });
    },
  };
  channel.subscribe(listeners);
  return () => {
    channel.start.unbindStore(current);
    channel.unsubscribe(listeners);
  };
}

/** The route as the conventions define it: the path without ids. */
function routeOf({ endpoint, operation }: TracedRequest): string | undefined {
  if (endpoint === 'graphql') return '/graphql';
  return endpoint === 'rest' ? operation?.replace(/^\S+ /, restPath) : operation;
}
