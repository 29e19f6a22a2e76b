/** The check of the upstream, which the doctor finds among the extensions. */

import { expect, it, onTestFinished } from 'vitest';
import { extensions } from '../../../../src/extensions/extensions.ts';
import { readConfig } from '../../../support/settings.ts';
import { openScripted, reply } from '../support/scripted.ts';

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
    const config = readConfig({ UPSTREAM_URL: upstream.base, UPSTREAM_TOKEN });
    const [check] = extensions.flatMap(({ checks }) => checks?.(config) ?? []);
    const found = await check?.[1]();
    const said = expect.stringMatching(says);
    expect(found).toEqual(state === 'ok' ? said : { says: said, advice: expect.any(String) });
    expect(JSON.stringify(found)).not.toContain('hidden');
    const authorization = `Bearer ${UPSTREAM_TOKEN || 'doctor'}`;
    expect(upstream.requests).toMatchObject([{ target: '/api/v1/users/me', headers: { authorization } }]);
  },
);
