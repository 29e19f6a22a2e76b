/** Whose account it is that a token opens. */

import { describe, expect, it } from 'vitest';
import { identifyByAnyRoute, identifyByUsersMe, readAccountId } from '../../src/mirror/account.ts';
import { type Upstream, UpstreamRejection } from '../../src/mirror/upstream.ts';

/** An upstream that has these paths and no other; takes the path of each request. */
function upstreamWith(paths: Readonly<Record<string, unknown>>, requests: string[] = []): Upstream {
  return {
    base: 'http://upstream/api/v1',
    requestCount: () => requests.length,
    async get(path) {
      const known = path.replace(/\?.*/, '');
      requests.push(known);
      if (known in paths) return paths[known];
      throw new UpstreamRejection(
        `GET ${path}: 404`,
        { failure: 'responded with 404', status: 404 },
        'not found',
      );
    },
    post: () => Promise.reject(new Error('nothing is to be written')),
  };
}

const bob = { id: 2, username: 'bob', subscriptionTier: 'ultra' };
/** What somebody can read who has imported templates of Bob's, and is linked with him. */
const ofBob = {
  '/users': { data: [bob] },
  '/users/2': bob,
  '/dtt/templates': { data: [{ id: 7, ownerId: 2 }], pagination: { total: 1, limit: 100, offset: 0 } },
};

describe('a client’s token', () => {
  it.each([
    ['checked', readAccountId],
    ['used by a run', identifyByUsersMe],
  ])(
    'that is %s is of the user that the upstream names as its own, and never guessed from what it can read',
    async (_, learn) => {
      const requests: string[] = [];
      await expect(learn(upstreamWith(ofBob, requests))).rejects.toThrow('404');
      expect(requests).toEqual(['/users/me']);
      // Where there is one token alone nothing else can be meant.
      expect((await identifyByAnyRoute(upstreamWith(ofBob))).row).toMatchObject({ id: 2 });
    },
  );

  it.each([
    {},
    { username: null },
    { username: '' },
    { username: 'x'.repeat(300) },
    { rank: 1.5 },
    { league: 'gold' },
    { totalPoints: 3e9 },
    { profileImage: {} },
  ])('is known by the id alone, whatever else is said of its user: %j', async (fields) => {
    expect(await readAccountId(upstreamWith({ '/users/me': { ...bob, ...fields } }))).toBe(2);
  });

  it.each([[{ ...bob, id: 'two' }], [{ ...bob, id: 0 }], [[bob]], [null]])(
    'is nobody’s without an id: %j',
    async (user) => {
      await expect(readAccountId(upstreamWith({ '/users/me': user }))).rejects.toThrow('GET /users/me: ');
    },
  );
});
