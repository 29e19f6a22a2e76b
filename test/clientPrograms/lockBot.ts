/**
 * A bot that keeps a lock in step with another service: it reads, locks, changes how long, and unlocks, and after each
 * write reads what it wrote. It does so for its own account or, with `targetUserId`, for that of a linked user.
 */

import { type Client, listOf, recordOf } from './client.ts';

const current = '/lkbx/session/current';

/** @param target whose lock it is; that of the account, unless told otherwise. */
export async function keepInStep(client: Client, target?: number): Promise<void> {
  const me = recordOf(await client.get('/users/me'))?.id;
  await client.get('/users');
  const [template] = listOf(await client.get('/lkbx/templates'));
  const whose = target === undefined ? {} : { targetUserId: target };
  const query = target === undefined ? '' : `?targetUserId=${target}`;
  const look = async () => {
    const lock = recordOf(await client.get(current + query));
    for (const path of ['/lkbx', '/lkbx/sessions/latest', '/lkbx/templates/active']) await client.get(path);
    return lock;
  };

  const lock = {
    action: 'lock',
    lockSettingsId: template?.id,
    ...whose,
    keyholderIds: [me],
    isTestLock: false,
  };
  await look();
  await client.send('POST', current, lock);
  const locked = await look();
  // There can be but one.
  await client.send('POST', current, lock);
  await client.send('PATCH', current + query, { duration: Number(locked?.duration ?? 60) + 600 });
  await look();
  await client.send('PATCH', current, { duration: 30, ...whose });
  await look();
  await client.send('PATCH', current, { duration: -1, ...whose });
  await client.send('POST', current, { action: 'unlock', ...whose, keyholderIds: [me] });
  await look();
  await client.send('POST', current, { action: 'unlock', ...whose });
  if (locked?.id !== undefined) await client.get(`/lkbx/sessions/${locked.id}`);
  await client.get('/lkbx/sessions?limit=2');
}

/** Names a user that is not linked, in a read and in each write. */
export async function tryUnlinked(client: Client, unlinked: number): Promise<void> {
  await client.get(`${current}?targetUserId=${unlinked}`);
  await client.send('POST', current, { action: 'lock', targetUserId: unlinked });
  await client.send('PATCH', current, { duration: 60, targetUserId: unlinked });
}
