import { expect, it } from 'vitest';
import { complaintAbout, readConfig, settings } from '../../support/settings.ts';

const primary = { DATABASE_URL: 'postgres://h/d' };

it('reads several URLs, each once', () => {
  const DATABASE_REPLICA_URLS = ' postgres://a/d,\npostgres://b/d postgres://a/d\n';
  expect(readConfig({ ...primary, DATABASE_REPLICA_URLS })).toMatchObject({
    DATABASE_REPLICA_URLS: ['postgres://a/d', 'postgres://b/d'],
  });
});

it.each([
  ['postgres://u:p#w@b/d', 'A password with characters such as @, #'],
  ['postgres://a/d postgres://u:p@b/d?sslmode=bogus', 'sslmode is "bogus", but takes disable, no-verify'],
])('rejects an invalid URL of a standby with the reason, without showing the URL: %s', (urls, reason) => {
  const complaint = complaintAbout({ ...primary, DATABASE_REPLICA_URLS: urls });
  expect(complaint).toContain(
    `DATABASE_REPLICA_URLS is not valid, but takes ${settings.DATABASE_REPLICA_URLS?.takes}. ${reason}`,
  );
  expect(complaint).not.toContain('u:p');
});

it('rejects standbys without a primary, and in front of an upstream', () => {
  const DATABASE_REPLICA_URLS = 'postgres://a/d';
  expect(complaintAbout({ DATABASE_REPLICA_URLS })).toBe(
    'DATABASE_REPLICA_URLS is set without DATABASE_URL, which it goes with.',
  );
  if ('UPSTREAM_URL' in settings)
    expect(complaintAbout({ ...primary, DATABASE_REPLICA_URLS, UPSTREAM_URL: 'https://h/api/v1' })).toBe(
      'DATABASE_REPLICA_URLS cannot be used with UPSTREAM_URL: unset one of them.',
    );
});
