/** Metrics for Prometheus, on a port of their own. */

import cluster from 'node:cluster';
import { integer, setting } from '../../config/setting.ts';
import type { Extension } from '../../extensionPoints.ts';

const settings = {
  METRICS_PORT: setting(
    'port of `/metrics` for Prometheus, and of probes, on HOST; 0 picks a free one; no metrics unless set',
    'an integer from 0 to 65535',
    integer(0, 65535).optional(),
  ),
};

export const metrics: Extension<typeof settings> = {
  settings,

  complain: ({ METRICS_PORT: port, PORT }) =>
    port && port === PORT ? [`METRICS_PORT is ${port}, as PORT is, but takes a port of its own.`] : [],

  async open(config, { database, ...parts }) {
    if (config.METRICS_PORT === undefined) return undefined;
    const { createMetrics, serveMetrics } = await import('./metrics.ts');
    const created = createMetrics({ ...parts, pool: database.pool });
    // Those of workers are served by the process that started them.
    if (cluster.isWorker) return created;
    let gateway: string | undefined;
    const served = await serveMetrics(config, config.METRICS_PORT, () => gateway, created.print);
    return {
      ...created,
      serving(url) {
        gateway = url;
      },
      ...served,
    };
  },

  async openPrimary(config, gateway) {
    if (config.METRICS_PORT === undefined) return undefined;
    const { serveMetrics } = await import('./metrics.ts');
    return serveMetrics(config, config.METRICS_PORT, () => gateway);
  },
};
