/** Traces for OpenTelemetry. */

import { z } from 'zod';
import { setting, type ValuesOf } from '../../config/setting.ts';
import type { Extension } from '../../extensionPoints.ts';

const url = z.url({ protocol: /^https?$/ });

const settings = {
  OTEL_EXPORTER_OTLP_ENDPOINT: setting(
    'where traces go, as OTLP over HTTP, to which `/v1/traces` is added; none unless set',
    'a URL such as http://localhost:4318',
    url.optional(),
  ),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: setting(
    'the whole URL that traces go to, in place of OTEL_EXPORTER_OTLP_ENDPOINT',
    'a URL such as http://localhost:4318/v1/traces',
    url.optional(),
  ),
};

/** The URL that traces are sent to; undefined if none are. */
export function endpointOf(config: ValuesOf<typeof settings>): string | undefined {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: base, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: exact } = config;
  if (exact !== undefined || base === undefined) return exact;
  const added = new URL(base);
  added.pathname = added.pathname.replace(/\/*$/, '/v1/traces');
  return added.href;
}

export const tracing: Extension<typeof settings> = {
  settings,
  async open(config, { logger }) {
    const endpoint = endpointOf(config);
    if (endpoint === undefined) return undefined;
    const { startTraces } = await import('./traces.ts');
    return startTraces(endpoint, logger);
  },
};
