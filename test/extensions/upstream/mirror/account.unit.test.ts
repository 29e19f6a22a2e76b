/** How the account of a token is found out. */

import { expect, it } from 'vitest';
import { type Upstream, UpstreamRejection } from '../../../../src/extensions/upstream/client/upstream.ts';
import { readAccount, readAccountId } from '../../../../src/extensions/upstream/mirror/account.ts';
import { addUser, createMemoryUpstream, missing, upstreamOf } from '../support/memoryUpstream.ts';

/** An upstream without `/users/me`, with records of three users, of whom the token can read one. */
function upstreamWith(requests: string[], isConfigured: boolean): Upstream {
  const memory = createMemoryUpstream();
  addUser(memory, 2);
  const responses: Record<string, unknown> = {
    '/dtt': { data: [] },
    '/dtt/templates': { data: [7, undefined, 7, 2, 5].map((ownerId, index) => ({ id: index + 1, ownerId })) },
    '/users/2': { id: 2, username: 'bob' },
    '/users/7': new UpstreamRejection('no', { failure: 'failed', status: 400 }, 'User not found'),
  };
  const respond = (path: string) => responses[path.replace(/\?.*/, '')] ?? missing;
  return { ...upstreamOf(memory, 2, requests, respond), isConfigured };
}

it.each([readAccount, readAccountId])(
  'a client’s token belongs to the user of /users/me, which is never guessed from the records that it can read (%s)',
  async (read) => {
    const requests: string[] = [];
    await expect(read(upstreamWith(requests, false))).rejects.toBe(missing);
    expect(requests).toEqual(['/users/me']);
  },
);

it('without /users/me, the token of the settings belongs to the first owner of a record that it can read', async () => {
  const requests: string[] = [];
  expect(await readAccount(upstreamWith(requests, true))).toMatchObject({ id: 2, username: 'bob' });
  expect(requests.map((path) => path.replace(/\?.*/, ''))).toEqual([
    ...['/users/me', '/dtt', '/dtt/templates'],
    ...['/users/7', '/users/2'],
  ]);
  const unknown = upstreamOf(createMemoryUpstream(), 2, requests, (path, own) =>
    /me$|users/.test(path) ? missing : own,
  );
  await expect(readAccount(unknown)).rejects.toThrow('The upstream does not tell whose account it is');
});
