import { once } from 'node:events';
import fs from 'node:fs';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { FolderInUse, isListening, lockFolder } from '../../../src/database/embedded/folder.ts';
import { newFolder } from '../../support/newFolder.ts';
import { endProcesses, type RunningProcess, startSourceScript, written } from '../../support/processes.ts';

const source = new URL('../../../src/database/embedded/folder.ts', import.meta.url);

let folder: string;
beforeEach(() => {
  folder = newFolder();
});
afterEach(endProcesses);

type FolderLock = Awaited<ReturnType<typeof lockFolder>>;

/** The lock, or undefined if another holds it. */
const claim = () =>
  lockFolder(folder).catch((error: unknown) => {
    if (error instanceof FolderInUse) return undefined;
    throw error;
  });

/** The locks that so many claims at the same moment get. */
async function claimAtOnce(count: number): Promise<FolderLock[]> {
  const claims = await Promise.all(Array.from({ length: count }, claim));
  return claims.flatMap((lock) => lock ?? []);
}

/** A process that claims the folder for each line that it reads, and prints the result. */
function startContender(): RunningProcess {
  return startSourceScript(
    `import { lockFolder } from ${JSON.stringify(source.href)};
     process.stdin.on('data', () => lockFolder(process.argv[1]).then(() => console.log('won'), (error) => console.log(error.name)));
     console.log('ready');`,
    folder,
  );
}

it('a folder can be claimed again once it is released, and has one file after any number of claims', async () => {
  for (let round = 0; round < 5; round++) await (await lockFolder(folder)).release();
  expect(await readdir(folder)).toEqual(['.lock.5']);
});

it('a lock is held until it is removed or replaced, and its release leaves the lock of another', async () => {
  const { isHeld, release } = await lockFolder(folder);
  const lock = join(folder, '.lock.1');
  expect(isHeld()).toBe(true);
  await rm(lock);
  expect(isHeld()).toBe(false);
  await writeFile(lock, 'of another');
  expect(isHeld()).toBe(false);
  await release();
  expect(await readFile(lock, 'utf8')).toBe('of another');
});

it.runIf(process.platform === 'linux')(
  'a process that takes no connection for a while still counts as listening',
  async () => {
    const path = join(folder, 'busy');
    const server = createServer().listen({ path, backlog: 1 });
    await once(server, 'listening');
    // All connect before this process can take the first: most find the queue of the socket full, as Linux says.
    expect(await Promise.all(Array.from({ length: 5 }, () => isListening(path)))).not.toContain(false);
    server.close();
  },
);

it('a claim that has listed the folder before other claims gives up a number that a higher one has replaced', async () => {
  let winner: FolderLock | undefined;
  const list = vi.spyOn(fs.promises, 'readdir').mockImplementationOnce(async () => {
    list.mockRestore();
    syncBuiltinESMExports();
    const found = await readdir(folder);
    // Other claims are made between its listing of the folder and its claim of the next number.
    await (await lockFolder(folder)).release();
    winner = await lockFolder(folder);
    // Its call of readdir returns names.
    return found as unknown as Awaited<ReturnType<typeof fs.promises.readdir>>;
  });
  syncBuiltinESMExports();
  expect(await claim()).toBeUndefined();
  expect(winner?.isHeld()).toBe(true);
  expect(await readdir(folder)).toEqual(['.lock.2']);
  await winner?.release();
});

it('claims of several processes have one winner in each round, even beside the lock of a winner that was killed', async () => {
  let contenders = Array.from({ length: 3 }, startContender);
  await Promise.all(contenders.map((each) => written(each, /ready/)));
  while (contenders.length > 1) {
    for (const { child, output } of contenders) {
      output.stdout = '';
      child.stdin.write('go\n');
    }
    await Promise.all(contenders.map((each) => written(each, /won|SetupError/)));
    const winners = contenders.filter(({ output }) => output.stdout.includes('won'));
    expect(winners).toHaveLength(1);
    winners[0]?.child.kill('SIGKILL');
    await winners[0]?.exit;
    contenders = contenders.filter((each) => !winners.includes(each));
  }
});

it('claims within one process have one winner, and at most one while the folder is released', async () => {
  for (let round = 0; round < 20; round++) {
    const won = await claimAtOnce(8);
    expect(won).toHaveLength(1);
    // These are made while the holder releases the folder: at most one of them may win.
    const late = claimAtOnce(3);
    await won[0]?.release();
    expect((await late).length).toBeLessThanOrEqual(1);
    await (await late)[0]?.release();
  }
});
