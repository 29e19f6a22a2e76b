import { expect, it } from 'vitest';
import { complaintAbout, readConfig } from '../../support/settings.ts';

it.each(['local', 'public'])('accepts DEMO_ACCOUNT=%s', (DEMO_ACCOUNT) => {
  expect(readConfig({ DEMO_ACCOUNT })).toMatchObject({ DEMO_ACCOUNT });
});

it('rejects DEMO_ACCOUNT=off', () => {
  expect(complaintAbout({ DEMO_ACCOUNT: 'off' })).toBe('DEMO_ACCOUNT is "off", but takes local or public.');
});
