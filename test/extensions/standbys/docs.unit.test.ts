import { expect, it } from 'vitest';
import { metricsOf } from '../../../src/extensions/standbys/replicas.ts';
import { metricsIn, rowsOfMetrics } from '../../docs/markdown.ts';

const metrics = metricsOf({ primary: 6, retried: 4 }, [
  { name: 'standby1:5432', reads: 11, current: () => undefined },
]);

it('docs/deployment.md lists the metrics of standbys', () => {
  expect(metricsIn('docs/deployment.md')).toEqual(rowsOfMetrics(metrics));
});

it('metrics say how many statements each server got, and which standbys are read from', () => {
  expect(metrics.map(({ read }) => read())).toEqual([
    [
      ['primary', 6],
      ['standby1:5432', 11],
    ],
    4,
    [['standby1:5432', 0]],
  ]);
});
