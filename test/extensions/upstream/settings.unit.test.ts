import { expect, it } from 'vitest';
import { complaintAbout, readConfig, settings } from '../../support/settings.ts';

const upstream = { UPSTREAM_URL: 'https://h/api/v1' };

it.each(['http://localhost:4318', 'https://otel.example/a'])('accepts UPSTREAM_URL=%s', (UPSTREAM_URL) => {
  expect(readConfig({ UPSTREAM_URL, UPSTREAM_TOKEN: '!~' })).toMatchObject({
    UPSTREAM_URL,
    UPSTREAM_TOKEN: '!~',
  });
  expect(readConfig({ UPSTREAM_URL: `${UPSTREAM_URL}//` })).toMatchObject({ UPSTREAM_URL });
});

it.each(['two words', 'ünusual'])('rejects an invalid token without showing it: %j', (wrong) => {
  expect(complaintAbout({ ...upstream, UPSTREAM_TOKEN: wrong })).toBe(
    'UPSTREAM_TOKEN is not valid, but takes a token: visible ASCII characters.',
  );
});

it.each([
  ...['ftp://h', 'xhttp://h', 'httpx://h', 'h/api/v1', 'https://h/#a'].map((wrong) => [wrong, wrong]),
  ['https://me:hunter2@h/api/v1', 'https://me:***@h/api/v1'],
  ['https://h/api/v1?key=hunter2', 'https://h/api/v1?***'],
  ['me:hunter2@h/api/v1', '***'],
])('rejects UPSTREAM_URL=%j without showing what may be secret', (wrong, shown) => {
  expect(complaintAbout({ UPSTREAM_URL: wrong })).toBe(
    `UPSTREAM_URL is ${JSON.stringify(shown)}, but takes ${settings.UPSTREAM_URL?.takes}.`,
  );
});

it.each([
  ['UPSTREAM_TOKEN', 'secret'],
  ['UPSTREAM_INTERVAL', '60'],
  ['UPSTREAM_RATE', '60'],
])('rejects %s=%s without UPSTREAM_URL', (name, value) => {
  for (const rest of [{}, { UPSTREAM_URL: '' }])
    expect(complaintAbout({ ...rest, [name]: value })).toBe(
      `${name} is set without UPSTREAM_URL, which it goes with.`,
    );
  expect(readConfig({ [name]: '' })).toEqual(readConfig({}));
});
