import { expect, it } from 'vitest';
import { complaintAbout, readConfig, settings } from '../../support/settings.ts';

it.each(['http://localhost:4318', 'https://otel.example/a'])(
  'accepts OTEL_EXPORTER_OTLP_ENDPOINT=%s',
  (OTEL_EXPORTER_OTLP_ENDPOINT) => {
    expect(readConfig({ OTEL_EXPORTER_OTLP_ENDPOINT })).toMatchObject({ OTEL_EXPORTER_OTLP_ENDPOINT });
  },
);

it.each(['ftp://h', 'xhttp://h', 'httpx://h', 'localhost:4318', '/traces'])(
  'rejects OTEL_EXPORTER_OTLP_ENDPOINT=%j',
  (wrong) => {
    expect(complaintAbout({ OTEL_EXPORTER_OTLP_ENDPOINT: wrong })).toBe(
      `OTEL_EXPORTER_OTLP_ENDPOINT is ${JSON.stringify(wrong)}, but takes ${settings.OTEL_EXPORTER_OTLP_ENDPOINT?.takes}.`,
    );
  },
);
