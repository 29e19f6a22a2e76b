/** The check of the upstream, as the doctor has it. */

import { expect, it, onTestFinished } from 'vitest';
import { extensions } from '../../../../src/extensions/extensions.ts';
import { readConfig } from '../../../support/settings.ts';
import { openScripted, reply } from '../support/scripted.ts';

const check = (settings: Record<string, string>) => {
  const config = readConfig(settings);
  return Promise.all(extensions.flatMap(({ checks }) => checks?.(config) ?? []).map(([, find]) => find()));
};

it('finds a problem with an upstream out of reach, and does not show the token', async () => {
  const found = await check({ UPSTREAM_URL: 'http://127.0.0.1:1/api/v1', UPSTREAM_TOKEN: 'secret' });
  expect(found).toMatchObject([{ says: expect.stringMatching(/^GET \/users\/me: /) }]);
  expect(JSON.stringify(found)).not.toContain('secret');
});

it.each([
  ['hidden', 200, { ok: true, data: { id: 1 } }, 'ok', /responds, and accepts the token$/],
  ['hidden', 401, { ok: false, error: 'Unauthorized' }, 'problem', /the token/],
  ['hidden', 500, { ok: false, error: 'Internal server error' }, 'problem', /500/],
  ['', 401, { ok: false, error: 'Unauthorized' }, 'ok', /responds; clients bring tokens of it$/],
  ['', 404, {}, 'problem', /UPSTREAM_URL/],
])(
  'sends the upstream one request with the token %j, and judges a response with %i and the body %j',
  async (UPSTREAM_TOKEN, status, body, state, says) => {
    const upstream = await openScripted();
    onTestFinished(upstream.close);
    upstream.respond = (_request, response) => reply(response, status, body);
    const [found] = await check({ UPSTREAM_URL: upstream.base, UPSTREAM_TOKEN });
    const isProblem = typeof found === 'object';
    expect([isProblem ? 'problem' : 'ok', isProblem ? found.says : found]).toEqual([
      state,
      expect.stringMatching(says),
    ]);
    const authorization = `Bearer ${UPSTREAM_TOKEN || 'doctor'}`;
    expect(upstream.requests).toMatchObject([{ target: '/api/v1/users/me', headers: { authorization } }]);
  },
);
