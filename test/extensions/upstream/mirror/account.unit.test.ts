/** How the account of a token is found out. */

import { describe, expect, it } from 'vitest';
import { type Upstream, UpstreamRejection } from '../../../../src/extensions/upstream/client/upstream.ts';
import {
  identifyByAnyRoute,
  identifyByUsersMe,
  readAccountId,
} from '../../../../src/extensions/upstream/mirror/account.ts';

const { signal: end } = new AbortController();

/** An upstream that has only these paths. The path of each request is added to `requests`. */
function upstreamWith(paths: Readonly<Record<string, unknown>>, requests: string[] = []): Upstream {
  return {
    base: 'http://upstream/api/v1',
    requestCount: () => requests.length,
    async get(path, signal) {
      // The end of a run ends its requests.
      expect(signal).toBe(end);
      const known = path.replace(/\?.*/, '');
      requests.push(known);
      if (known in paths) return paths[known];
      throw new UpstreamRejection(
        `GET ${path}: 404`,
        { failure: 'responded with 404', status: 404 },
        'not found',
      );
    },
    post: () => Promise.reject(new Error('no write is expected')),
  };
}

const bob = { id: 2, username: 'bob', subscriptionTier: 'ultra' };
/** What another user can read who has imported templates of Bob's and is linked with him. */
const ofBob = {
  '/users/2': bob,
  '/dtt': { data: [], pagination: { total: 0, limit: 100, offset: 0 } },
  '/dtt/templates': { data: [{ id: 7, ownerId: 2 }], pagination: { total: 1, limit: 100, offset: 0 } },
};

describe('a client’s token', () => {
  it.each([
    ['checked', readAccountId],
    ['used by a run', identifyByUsersMe],
  ])(
    'that is %s belongs to the user of /users/me, which is never guessed from the records that it can read',
    async (_, learn) => {
      const requests: string[] = [];
      await expect(learn(upstreamWith(ofBob, requests), end)).rejects.toThrow('404');
      expect(requests).toEqual(['/users/me']);
      // The single token of a mirror of one account may be identified by other routes.
      expect(await identifyByAnyRoute(upstreamWith(ofBob), end)).toMatchObject({ id: 2 });
      const ofNobody = { ...ofBob, '/dtt/templates': ofBob['/dtt'] };
      await expect(identifyByAnyRoute(upstreamWith(ofNobody), end)).rejects.toThrow('whose account it is');
    },
  );
});
