/**
 * A bot that synchronizes a lock with another service: it reads the lock, locks it, changes the duration and unlocks it, and
 * reads it again after each write. It does so for its own account or, with `targetUserId`, for that of a linked user.
 */

import { type Client, listOf, recordOf } from './client.ts';

const current = '/lkbx/session/current';

/** @param target the id of the user whose lock it is; by default it is the lock of the client's own account. */
export async function syncLock(client: Client, target?: number): Promise<void> {
  const me = recordOf(await client.get('/users/me'))?.id;
  await client.get('/users');
  const [template] = listOf(await client.get('/lkbx/templates'));
  const targetField = target === undefined ? {} : { targetUserId: target };
  const query = target === undefined ? '' : `?targetUserId=${target}`;
  const read = async () => {
    const lock = recordOf(await client.get(current + query));
    for (const path of ['/lkbx', '/lkbx/sessions/latest', '/lkbx/templates/active']) await client.get(path);
    return lock;
  };

  const lock = {
    action: 'lock',
    lockSettingsId: template?.id,
    ...targetField,
    keyholderIds: [me],
    isTestLock: false,
  };
  await read();
  await client.send('POST', current, lock);
  const locked = await read();
  // A second lock session is rejected.
  await client.send('POST', current, lock);
  await client.send('PATCH', current + query, { duration: Number(locked?.duration ?? 60) + 600 });
  await read();
  await client.send('PATCH', current, { duration: 30, ...targetField });
  await read();
  await client.send('PATCH', current, { duration: -1, ...targetField });
  await client.send('POST', current, { action: 'unlock', ...targetField, keyholderIds: [me] });
  await read();
  await client.send('POST', current, { action: 'unlock', ...targetField });
  if (locked?.id !== undefined) await client.get(`/lkbx/sessions/${locked.id}`);
  await client.get('/lkbx/sessions?limit=2');
}

/** Sends the id of a user who is not linked, in a read and in each write. */
export async function requestUnlinked(client: Client, unlinked: number): Promise<void> {
  await client.get(`${current}?targetUserId=${unlinked}`);
  await client.send('POST', current, { action: 'lock', targetUserId: unlinked });
  await client.send('PATCH', current, { duration: 60, targetUserId: unlinked });
}
