import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { metricsOf } from '../../../src/extensions/upstream/hooks.ts';
import { messages } from '../../../src/extensions/upstream/messages.ts';
import { metricsIn, rowsOfMetrics } from '../../docs/markdown.ts';
import { shippedDocument } from '../../support/openapiDocument.ts';

const metrics = metricsOf({ figures: () => ({ accounts: 2, skipped: 3, requests: 5 }) });

/** A message with its status. */
const at = (status: number) => (message: string) => ({ status, message });

it('the OpenAPI document has the messages in front of a service that docs/rest.md lists, as they are sent', () => {
  const { BadGateway, ServiceUnavailable, GatewayTimeout } = shippedDocument.components?.responses ?? {};
  const described = { 502: BadGateway, 503: ServiceUnavailable, 504: GatewayTimeout };
  const [, section = ''] =
    /^## Errors in front of a service\n(.*?)^## /ms.exec(readFileSync('docs/rest.md', 'utf8')) ?? [];
  const listed = [...section.matchAll(/\| ([^|]*50\d[^|]*) \| `(.*)` \|/g)].flatMap(
    ([, statuses = '', message = '']) =>
      (statuses.match(/50\d/g) ?? []).map((status) => at(Number(status))(message)),
  );
  expect(listed.length).toBeGreaterThan(5);
  const own = [
    ...[messages.upstreamUnreachable, messages.upstreamTooLarge, messages.upstreamUnusable].map(at(502)),
    ...[messages.upstreamUnreachable, messages.accountUnreachable].map(at(503)),
    at(504)(messages.upstreamTooSlow),
  ];
  expect(listed).toEqual(expect.arrayContaining(own));
  for (const { status, message } of listed)
    expect(described).toHaveProperty([status, 'content', 'application/json', 'examples', message]);
});

it('docs/mirror.md lists the metrics of a mirror', () => {
  expect(metricsIn('docs/mirror.md')).toEqual(rowsOfMetrics(metrics));
  expect(metrics.map(({ read }) => read())).toEqual([2, 3, 5]);
});
