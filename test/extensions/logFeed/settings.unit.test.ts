import { expect, it } from 'vitest';
import { complaintAbout } from '../../support/settings.ts';

it('rejects CHANGE_FEED=logical for the embedded engine', () => {
  expect(complaintAbout({ CHANGE_FEED: 'logical', DATABASE_URL: '' })).toBe(
    'CHANGE_FEED is logical, but the embedded engine has no logical decoding: set DATABASE_URL, or unset CHANGE_FEED.',
  );
});
