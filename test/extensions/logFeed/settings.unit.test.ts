import { expect, it } from 'vitest';
import { complaintAbout, readConfig, settings } from '../../support/settings.ts';

it.each(['auto', 'notify', 'logical'])('accepts CHANGE_FEED=%s', (CHANGE_FEED) => {
  expect(readConfig({ DATABASE_URL: 'postgres://h/d', CHANGE_FEED })).toMatchObject({ CHANGE_FEED });
});

it.each(['on', 'Notify'])('rejects CHANGE_FEED=%j', (wrong) => {
  expect(complaintAbout({ CHANGE_FEED: wrong })).toBe(
    `CHANGE_FEED is ${JSON.stringify(wrong)}, but takes ${settings.CHANGE_FEED?.takes}.`,
  );
});

it('rejects CHANGE_FEED=logical for the embedded engine', () => {
  expect(complaintAbout({ CHANGE_FEED: 'logical', DATABASE_URL: '' })).toBe(
    'CHANGE_FEED is logical, but the embedded engine has no logical decoding: set DATABASE_URL, or unset CHANGE_FEED.',
  );
});
