import { expect, it } from 'vitest';
import { endpointOf, type tracing } from '../../../src/extensions/tracing/extension.ts';
import { complaintAbout, readConfig, settings } from '../../support/settings.ts';

const base = 'OTEL_EXPORTER_OTLP_ENDPOINT';
const exact = 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT';

it.each<[Record<string, string>, string | undefined]>([
  [{}, undefined],
  [{ [base]: 'http://h:4318' }, 'http://h:4318/v1/traces'],
  [{ [base]: 'http://u:p@h/a/?key=/x/' }, 'http://u:p@h/a/v1/traces?key=/x/'],
  [{ [exact]: 'http://h/in?key=x' }, 'http://h/in?key=x'],
  [{ [exact]: 'http://h/in', [base]: 'http://other' }, 'http://h/in'],
])('traces for %o go to %s', (env, endpoint) => {
  // The settings of all extensions have those of this one.
  expect(endpointOf(readConfig(env) as Parameters<NonNullable<typeof tracing.open>>[0])).toBe(endpoint);
});

it.each([
  ...['ftp://h', 'xhttp://h', 'httpx://h', 'localhost:4318', '/traces'].map(
    (wrong) => [base, wrong] as const,
  ),
  [exact, '/v1/traces'],
] as const)('rejects %s=%j', (name, wrong) => {
  expect(complaintAbout({ [name]: wrong })).toBe(
    `${name} is ${JSON.stringify(wrong)}, but takes ${settings[name]?.takes}.`,
  );
});
