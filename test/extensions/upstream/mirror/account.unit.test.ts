/** How the account of a token is found out. */

import { expect, it } from 'vitest';
import { readAccount, readAccountId } from '../../../../src/extensions/upstream/mirror/account.ts';
import { addUser, createMemoryUpstream, missing, upstreamOf } from '../support/memoryUpstream.ts';

it.each([readAccount, readAccountId])(
  'a token belongs to the user of /users/me, which is never guessed from the records that it can read',
  async (read) => {
    const memory = createMemoryUpstream();
    addUser(memory, 2);
    const requests: string[] = [];
    const upstream = upstreamOf(memory, 2, requests, () => missing);
    await expect(read(upstream)).rejects.toBe(missing);
    expect(requests).toEqual(['/users/me']);
  },
);
