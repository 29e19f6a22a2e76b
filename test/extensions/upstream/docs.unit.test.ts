import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { metricsOf } from '../../../src/extensions/upstream/hooks.ts';
import { describeRest } from '../../../src/rest/openapi.ts';
import { findAccountsElsewhere } from '../../../src/server/hooks.ts';
import { metricsIn, rowsOfMetrics } from '../../docs/markdown.ts';
import { readConfig } from '../../support/settings.ts';

const metrics = metricsOf({ figures: () => ({ accounts: 2, skipped: 3, requests: 5 }) });

it('the REST reference in front of a service has the messages that docs/rest.md lists', () => {
  const config = readConfig({ DATABASE_URL: 'postgresql://h/d', UPSTREAM_URL: 'https://example.com/api/v1' });
  const errors = findAccountsElsewhere(config)?.restErrors;
  const { components } = describeRest({ routes: [], version: '1.0.0', examples: {}, errors });
  const { BadGateway, ServiceUnavailable, GatewayTimeout } = components?.responses ?? {};
  const described = { 502: BadGateway, 503: ServiceUnavailable, 504: GatewayTimeout };
  const [, section = ''] =
    /^## Errors in front of a service\n(.*?)^## /ms.exec(readFileSync('docs/rest.md', 'utf8')) ?? [];
  const listed = [...section.matchAll(/\| ([^|]*50\d[^|]*) \| `(.*)` \|/g)].flatMap(
    ([, statuses = '', message = '']) =>
      (statuses.match(/50\d/g) ?? []).map((status) => ({ status, message })),
  );
  expect(listed.length).toBeGreaterThan(5);
  for (const { status, message } of listed)
    expect(described).toHaveProperty([status, 'content', 'application/json', 'examples', message]);
  const own = Object.values(errors ?? {}).flat();
  expect(listed.map(({ message }) => message)).toEqual(expect.arrayContaining(own));
});

it('docs/mirror.md lists the metrics of a mirror', () => {
  expect(metricsIn('docs/mirror.md')).toEqual(rowsOfMetrics(metrics));
  expect(metrics.map(({ read }) => read())).toEqual([2, 3, 5]);
});
