import { expect, it } from 'vitest';
import { metricsOf } from '../../../src/extensions/upstream/hooks.ts';
import { metricsIn, rowsOfMetrics } from '../../docs/markdown.ts';

const metrics = metricsOf({ figures: () => ({ accounts: 2, skipped: 3, requests: 5 }) });

it('docs/mirror.md lists the metrics of a mirror', () => {
  expect(metricsIn('docs/mirror.md')).toEqual(rowsOfMetrics(metrics));
  expect(metrics.map(({ read }) => read())).toEqual([2, 3, 5]);
});
