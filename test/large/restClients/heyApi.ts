/** A program with the client that @hey-api/openapi-ts generates. */

import { client } from './generated/heyApi/client.gen.ts';
import {
  activateDttTemplate,
  getCurrentLockSession,
  getDttDevice,
  listDttTemplates,
} from './generated/heyApi/index.ts';

export async function run(baseUrl: string, token: string) {
  client.setConfig({ baseUrl, auth: token });
  const { data: list } = await listDttTemplates({ query: { limit: 1 } });
  const id = list?.data.data[0]?.id ?? 0;
  const { data: activated } = await activateDttTemplate({ path: { id }, body: { isActive: true } });
  const { data: lock } = await getCurrentLockSession();
  const { error } = await getDttDevice({ path: { id: 2 ** 31 - 1 } });
  return {
    id,
    segments: activated?.data.Segment.map(({ type, duration }) => `${type} of ${duration} s`),
    isLocked: lock?.data?.isActive,
    error: error?.error,
  };
}
