/** The same program with the client that orval generates. */

import {
  activateDttTemplate,
  getCurrentLockSession,
  getDttDevice,
  listDttTemplates,
} from './generated/orval/client.ts';

/** The generated code has the address. */
export async function run(_: string, token: string) {
  const options = { headers: { Authorization: `Bearer ${token}` } };
  const list = await listDttTemplates({ limit: 1 }, options);
  const id = list.status === 200 ? (list.data.data.data[0]?.id ?? 0) : 0;
  const activated = await activateDttTemplate(id, { isActive: true }, {}, options);
  const lock = await getCurrentLockSession({}, options);
  const missing = await getDttDevice(2 ** 31 - 1, {}, options);
  return {
    id,
    segments:
      activated.status === 200
        ? activated.data.data.Segment.map(({ type, duration }) => `${type} of ${duration} s`)
        : undefined,
    isLocked: lock.status === 200 ? lock.data.data?.isActive : undefined,
    error: missing.status === 404 ? missing.data.error : undefined,
  };
}
