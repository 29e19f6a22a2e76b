/** Serves metrics, on a port of their own: they have no token and show how busy the gateway is. */

import { once } from 'node:events';
import { createServer } from 'node:http';
import { AggregatorRegistry, Registry } from 'prom-client';
import type { Config } from '../config/config.ts';
import { listen } from '../http/port.ts';

export interface MetricsServer {
  /** Where they are, such as `http://127.0.0.1:9464/metrics`. */
  readonly url: string;
  close(): Promise<void>;
}

/**
 * Serves metrics at `/metrics`, for the operator's network.
 * @param print gives those of this process; without it, those of all workers together.
 * @throws {SetupError} when the port cannot be listened on.
 */
export async function serveMetrics(
  config: Pick<Config, 'HOST' | 'PORT' | 'METRICS_PORT'>,
  print?: () => Promise<string>,
): Promise<MetricsServer> {
  const read = print ?? createAggregate();
  const server = createServer((request, response) => {
    if (request.url?.split('?', 1)[0] !== '/metrics') {
      response.writeHead(404, { 'Content-Type': 'text/plain' }).end('Not found. Try /metrics.\n');
      return;
    }
    read().then(
      (text) => response.writeHead(200, { 'Content-Type': Registry.PROMETHEUS_CONTENT_TYPE }).end(text),
      // A worker that dies while it is asked says nothing.
      () => response.writeHead(503).end(),
    );
  });
  const origin = await listen(server, config, 'METRICS_PORT');
  return {
    url: `${origin}/metrics`,
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function createAggregate(): () => Promise<string> {
  const aggregator = new AggregatorRegistry();
  return () => aggregator.clusterMetrics();
}
