import { expect, it } from 'vitest';
import { extensions } from '../../../src/extensions/extensions.ts';
import { metrics } from '../../../src/extensions/metrics/extension.ts';
import { complaintAbout, readConfig } from '../../support/settings.ts';

it('rejects METRICS_PORT with the value of PORT, unless any port will do', () => {
  expect(complaintAbout({ METRICS_PORT: '4000' })).toBe(
    'METRICS_PORT is 4000, as PORT is, but takes a port of its own.',
  );
  expect(readConfig({ PORT: '0', METRICS_PORT: '0' })).toMatchObject({ PORT: 0, METRICS_PORT: 0 });
});

it('is opened when all others are open, since it shows their metrics', () => {
  expect(extensions.at(-1)).toBe(metrics);
});
