/** `dovetail forget`. */

import { rm } from 'node:fs/promises';
import { afterAll, expect, it } from 'vitest';
import { openDatabase } from '../../../../src/database/database.ts';
import { copyTemplate, withClient } from '../../../support/gateway.ts';
import { runHere } from '../../../support/runHere.ts';

const dovetail = (...args: string[]) => runHere(args, { DATA_DIR: folder, UPSTREAM_TOKEN: 'dvt_x' });
const folder = await copyTemplate();
const database = withClient(await openDatabase({ DATABASE_URL: undefined, DATA_DIR: folder }));
const { mirror, user, dttDevice, dttTemplate, dttLibraryEntry } = database.client;
await mirror.create({ data: { source: 'https://example.com' } });
for (const [id, username] of [
  [7, 'amy'],
  [8, 'bob\x1b'],
  [9, 'cat'],
] as const)
  await user.create({ data: { id, username, mirrored: { create: {} } } });
await dttDevice.createMany({ data: ['1', '2'].map((bubbleId) => ({ bubbleId, ownerId: 7 })) });
const { id: templateId } = await dttTemplate.create({
  data: { bubbleId: '1', ownerId: 7, name: 'One', targetDepth: 1, targetWindow: 1 },
});
await dttLibraryEntry.create({ data: { userId: 9, templateId } });
await database.close();
afterAll(() => rm(folder, { recursive: true, force: true }));

it.each([
  [2, [], /^error: name the account, by --user or by --id\n$/],
  [2, ['--user', 'amy', '--id', '7'], /^error: name the account, by --user or by --id\n$/],
  [
    1,
    ['--user', 'Amy'],
    /^The mirror has no account of the name "Amy"\. `npx dovetail-gateway user list` names its accounts\./,
  ],
])('exits with %i for %j, and prints the reason', async (code, args, message) => {
  const stderr = expect.stringMatching(message);
  expect(await dovetail('forget', ...args)).toEqual({ code, stdout: '', stderr });
});

it('removes an account by its name or its id, and prints which it was', async () => {
  expect(await dovetail('forget', '--user', 'amy')).toEqual({
    code: 0,
    stdout: '',
    stderr: 'Removed the account "amy" (id 7). Others keep 1 of its templates, which they have imported.\n',
  });
  const { stdout, stderr } = await dovetail('forget', '--id', '8', '--json');
  expect(stderr).toBe('Removed the account "bob " (id 8).\n');
  expect(JSON.parse(stdout)).toEqual({ id: 8, username: 'bob\x1b', left: 0 });
  expect(JSON.parse((await dovetail('user', 'list', '--json')).stdout)).toMatchObject([{ id: 9 }]);
});
