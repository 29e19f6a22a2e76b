/** Traces for OpenTelemetry. */

import { z } from 'zod';
import { setting } from '../../config/setting.ts';
import type { Extension } from '../../extensionPoints.ts';

const settings = {
  OTEL_EXPORTER_OTLP_ENDPOINT: setting(
    'where traces go, as OTLP over HTTP, such as http://localhost:4318; none unless set',
    'a URL such as http://localhost:4318',
    z.url({ protocol: /^https?$/ }).optional(),
  ),
};

export const tracing: Extension<typeof settings> = {
  settings,
  async open({ OTEL_EXPORTER_OTLP_ENDPOINT: collector }, { logger }) {
    if (collector === undefined) return undefined;
    const { startTraces } = await import('./traces.ts');
    return startTraces(collector, logger);
  },
};
