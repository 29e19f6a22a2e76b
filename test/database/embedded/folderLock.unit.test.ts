import { once } from 'node:events';
import fs from 'node:fs';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { connect, createServer, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { lockFolder } from '../../../src/database/embedded/folderLock.ts';
import { endProcesses, type RunningProcess, startSourceScript, written } from '../../support/processes.ts';

const source = new URL('../../../src/database/embedded/folderLock.ts', import.meta.url);

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dovetail-lock-'));
});
afterEach(async () => {
  await endProcesses();
  await rm(folder, { recursive: true, force: true });
});

/** A process that claims the folder for each line that it reads, and prints the result. */
function startContender(): RunningProcess {
  return startSourceScript(
    `import { lockFolder } from ${JSON.stringify(source.href)};
     process.stdin.on('data', async () => console.log('holder' in (await lockFolder(process.argv[1])) ? 'rejected' : 'won'));
     console.log('ready');`,
    folder,
  );
}

async function kill({ child, exit }: RunningProcess): Promise<void> {
  child.kill('SIGKILL');
  await exit;
}

describe('a claimed folder', () => {
  it('is denied to all other claims, with the name of the holder', async () => {
    const claimed = await lockFolder(folder);
    expect(claimed).toHaveProperty('release');
    const others = await Promise.all(Array.from({ length: 10 }, () => lockFolder(folder)));
    for (const other of others) expect(other).toEqual({ holder: `process ${process.pid}` });
    if ('release' in claimed) await claimed.release();
  });

  it('can be claimed again once it is released, and has one file after any number of claims', async () => {
    for (let round = 0; round < 5; round++) {
      const claimed = await lockFolder(folder);
      if ('holder' in claimed) throw new Error(`round ${round} was denied`);
      await claimed.release();
    }
    expect(await readdir(folder)).toEqual(['.lock.5']);
  });

  it('is held until its lock is removed or replaced, and its release leaves the lock of another', async () => {
    const claimed = await lockFolder(folder);
    if ('holder' in claimed) throw new Error('it was denied');
    const lock = join(folder, '.lock.1');
    expect(claimed.isHeld()).toBe(true);
    await rm(lock);
    expect(claimed.isHeld()).toBe(false);
    await writeFile(lock, 'of another');
    expect(claimed.isHeld()).toBe(false);
    await claimed.release();
    expect(await readFile(lock, 'utf8')).toBe('of another');
  });

  it.each<[string, (socket: Socket) => unknown]>([
    ['does not respond', () => {}],
    ['closes the connection', (socket) => socket.destroy()],
  ])('is denied to other claims by a holder that %s', async (_, response) => {
    const waits: number[] = [];
    const wait = vi.spyOn(Socket.prototype, 'setTimeout').mockImplementation(function (
      this: Socket,
      time,
      done,
    ) {
      waits.push(time);
      setTimeout(done ?? (() => {}), 50);
      return this;
    });
    const holder = createServer(response).listen(join(folder, '.lock.1'));
    onTestFinished(() => {
      wait.mockRestore();
      holder.close();
    });
    await once(holder, 'listening');
    expect(await lockFolder(folder)).toEqual({ holder: 'another process' });
    expect(waits).toEqual([2_000]);
  });

  it('stays held when clients that ask for its holder disconnect before the response', async () => {
    const claimed = await lockFolder(folder);
    const leave = async () => {
      const socket = connect(join(folder, '.lock.1'));
      await once(socket, 'connect');
      socket.destroy();
    };
    // An error event without a listener would fail the run.
    await Promise.all(Array.from({ length: 20 }, leave));
    expect(await lockFolder(folder)).toEqual({ holder: `process ${process.pid}` });
    if ('release' in claimed) await claimed.release();
  });

  it('is free at once when its process is killed', async () => {
    const contender = startContender();
    await written(contender, /ready/);
    contender.child.stdin.write('go\n');
    await written(contender, /won/);
    expect(await lockFolder(folder)).toEqual({ holder: `process ${contender.child.pid}` });
    await kill(contender);
    const claimed = await lockFolder(folder);
    expect(claimed).toHaveProperty('release');
    if ('release' in claimed) await claimed.release();
  });
});

describe('a claim that has listed the folder before other claims were made', () => {
  it('gives up its number, which is free only because a higher number has replaced it', async () => {
    let winner: Awaited<ReturnType<typeof lockFolder>> | undefined;
    const list = vi.spyOn(fs.promises, 'readdir').mockImplementationOnce(async () => {
      list.mockRestore();
      syncBuiltinESMExports();
      const found = await readdir(folder);
      // Other claims are made between its listing of the folder and its claim of the next number.
      const before = await lockFolder(folder);
      if ('release' in before) await before.release();
      winner = await lockFolder(folder);
      // Its call of readdir returns names.
      return found as unknown as Awaited<ReturnType<typeof fs.promises.readdir>>;
    });
    syncBuiltinESMExports();
    const late = await lockFolder(folder);
    expect(winner).toHaveProperty('release');
    expect(late).toEqual({ holder: `process ${process.pid}` });
    expect(await readdir(folder)).toEqual(['.lock.2']);
    if (winner && 'release' in winner) await winner.release();
  });
});

describe('claims at the same moment', () => {
  it('have one winner in each round, even beside the lock of the previous winner, which was killed', async () => {
    let contenders = Array.from({ length: 6 }, startContender);
    await Promise.all(contenders.map((each) => written(each, /ready/)));
    while (contenders.length > 1) {
      for (const { child, output } of contenders) {
        output.stdout = '';
        child.stdin.write('go\n');
      }
      await Promise.all(contenders.map((each) => written(each, /won|rejected/)));
      const winners = contenders.filter(({ output }) => output.stdout.includes('won'));
      expect(winners).toHaveLength(1);
      await Promise.all(winners.map(kill));
      contenders = contenders.filter((each) => !winners.includes(each));
    }
  });

  it('have one winner within one process, and at most one while the folder is released', async () => {
    for (let round = 0; round < 50; round++) {
      const claims = await Promise.all(Array.from({ length: 8 }, () => lockFolder(folder)));
      const won = claims.flatMap((each) => ('release' in each ? each : []));
      expect(won).toHaveLength(1);
      // These are made while the holder releases the folder: at most one of them may win.
      const late = Promise.all(Array.from({ length: 3 }, () => lockFolder(folder)));
      await won[0]?.release();
      const lateWon = (await late).flatMap((each) => ('release' in each ? each : []));
      expect(lateWon.length).toBeLessThanOrEqual(1);
      await lateWon[0]?.release();
    }
  });
});
