import { expect, it } from 'vitest';
import { readConfig as readConfigOf } from '../../../src/config/config.ts';
import { metrics } from '../../../src/extensions/metrics/extension.ts';
import { complaintAbout, readConfig } from '../../support/settings.ts';

it('rejects METRICS_PORT with the value of PORT, unless any port will do', () => {
  expect(complaintAbout({ METRICS_PORT: '4000' })).toBe(
    'METRICS_PORT is 4000, as PORT is, but takes a port of its own.',
  );
  expect(readConfig({ PORT: '0', METRICS_PORT: '0' })).toMatchObject({ PORT: 0, METRICS_PORT: 0 });
});

it('checks that METRICS_PORT can be listened on', async () => {
  const config = { ...readConfigOf({ HOST: '192.0.2.1' }, []), METRICS_PORT: 4001 };
  const [check] = metrics.checks?.(config, async () => undefined) ?? [];
  await expect(check?.[1]()).rejects.toThrow('METRICS_PORT 4001 cannot be listened on: listen EADDRNOTAVAIL');
});
