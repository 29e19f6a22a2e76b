/** What a start and the home page say of accounts in front of an upstream. */

import { expect, it } from 'vitest';
import { bannerOf } from '../../../src/server/banner.ts';
import { findAccountsElsewhere } from '../../../src/server/hooks.ts';
import { readConfig } from '../../support/settings.ts';

const url = 'http://127.0.0.1:4000';
const settings = { DATABASE_URL: 'postgresql://h/d', UPSTREAM_URL: 'https://example.com/api/v1' };
const print = (more: Record<string, string>, hasUsers: boolean) =>
  bannerOf(readConfig({ ...settings, ...more }), { url, hasUsers, workers: 1 });

it('a start says that the account is being mirrored, and how to create a token for it', () => {
  expect(print({ UPSTREAM_TOKEN: 'x' }, false)).toContain(`
  The account of https://example.com/api/v1 is being mirrored. A token for it, once the log says "mirror in step":

    DATABASE_URL=postgresql://h/d npx dovetail-gateway token create --user NAME --name laptop --scope manage
`);
  expect(print({ UPSTREAM_TOKEN: 'x' }, true)).toContain(
    '\n  A token for a user, who can create more with it in the console:\n',
  );
});

it('a start tells clients with tokens of the upstream where to ask', () => {
  expect(print({}, true)).toContain(
    `\n  Clients of https://example.com/api/v1 keep their tokens, and ask here instead: ${url}/api/v1\n`,
  );
});

it.each([
  [{}, 'Use the token that you have for the service behind this gateway. '],
  [{ UPSTREAM_TOKEN: 'x' }, ''],
])('the home page says for %j: %s', (more, use) => {
  expect(findAccountsElsewhere(readConfig({ ...settings, ...more }))?.use).toBe(use);
});
