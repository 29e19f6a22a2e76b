import { expect, it } from 'vitest';
import { examine } from '../../../src/cli/doctor/checks.ts';
import { complaintAbout, readConfig } from '../../support/settings.ts';

it('rejects METRICS_PORT with the value of PORT, unless any port will do', () => {
  expect(complaintAbout({ METRICS_PORT: '4000' })).toBe(
    'METRICS_PORT is 4000, as PORT is, but takes a port of its own.',
  );
  expect(readConfig({ PORT: '0', METRICS_PORT: '0' })).toMatchObject({ PORT: 0, METRICS_PORT: 0 });
});

it('doctor finds an address of another machine for metrics', async () => {
  const findings = await examine({
    DATA_DIR: '/dev/null',
    PORT: '0',
    HOST: '192.0.2.1',
    METRICS_PORT: '4001',
  });
  expect(findings).toContainEqual(
    expect.objectContaining({ check: 'metrics port', says: expect.stringContaining('EADDRNOTAVAIL') }),
  );
});
