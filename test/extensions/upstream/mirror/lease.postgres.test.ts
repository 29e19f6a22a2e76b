/** Runs of one account in several processes, of which one at a time writes. */

import { expect, it } from 'vitest';
import { arrive, ask, openForEachTest, patch } from '../support/frontedService.ts';
import { faults } from '../support/standIn/faults.ts';

const alice = 'token-of-alice';
const open = openForEachTest();
const details = { path: /^\/dtt\/sessions\/\d+$/ };
const name = async (gateway: Parameters<typeof ask>[0]) =>
  (await ask(gateway, alice, '{ dttTemplate(databaseId: 1) { name } }')).body;

it('a write through one gateway is shown by it at once, even while the other gateway reads details', async () => {
  const { gateway, service, openAnother } = await open({
    standIn: { accounts: [{ id: 1, username: 'alice', tokens: [alice], size: { sessions: 100 } }] },
  });
  const other = await openAnother();
  service.misbehave(faults.slow(400), details);
  await arrive(gateway, alice);
  await arrive(other, alice);
  await expect.poll(() => service.requests.some(({ path }) => details.path.test(path))).toBe(true);
  for (const [written, shown] of [
    [other, 'of the second'],
    [gateway, 'of the first'],
  ] as const) {
    expect((await patch(written, alice, '/dtt/templates/1', { name: shown })).status).toBe(200);
    expect(await name(written)).toEqual({ data: { dttTemplate: { name: shown } } });
  }
});
