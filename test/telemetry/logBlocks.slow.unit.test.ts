/** Lines of the log are not lost, however the process ends that writes them, in a file, a pipe or a socket. */

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';

vi.setConfig({ testTimeout: 60_000 });

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'dovetail-log-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const log = new URL('../../src/telemetry/log.ts', import.meta.url);
const prelude = `
  import { setTimeout as sleep } from 'node:timers/promises';
  import { createLogger } from '${log}';
  const logger = createLogger('info');
  const logLines = (count, from = 0) => { for (let n = from; n < from + count; n++) logger.info({ n }, 'x'.repeat(100)); };
`;

/** Runs a command that may start Node as `$0` with a script as `$1`. */
const inShell = (command: string, script: string) =>
  promisify(execFile)('/bin/sh', ['-c', command, process.execPath, script], { maxBuffer: 10 * 1024 * 1024 });

type Stderr = number | 'pipe';

/** Starts a script that logs. `ready` resolves when it first writes to standard output. */
function start(source: string, stderr: Stderr) {
  const child = spawn(
    process.execPath,
    ['--import', 'tsx', '--input-type=module', '--eval', prelude + source],
    {
      stdio: ['ignore', 'pipe', stderr],
    },
  );
  const ready = new Promise<void>((settle) => child.stdout?.once('data', () => settle()));
  return { child, ready, exit: once(child, 'exit') };
}

const entriesIn = (text: string): { level: number; n?: number; lost?: number; msg: string }[] =>
  text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));
const numbersIn = (text: string) => entriesIn(text).flatMap(({ n }) => n ?? []);
const upTo = (count: number) => Array.from({ length: count }, (_, index) => index);

/** The log that a script has written to a file when it has ended. */
async function written(source: string, act?: (started: ReturnType<typeof start>) => Promise<unknown>) {
  const name = join(folder, 'log');
  writeFileSync(name, '');
  const file = openSync(name, 'a');
  const started = start(source, file);
  closeSync(file);
  await act?.(started);
  await started.exit;
  return readFileSync(name, 'utf8');
}

const lines = 1_000;

describe('a log in a file', () => {
  it.each([
    ['by itself', `logLines(${lines});`],
    ['by process.exit', `logLines(${lines}); process.exit(1);`],
    ['by an exception', `logLines(${lines}); throw new Error('unforeseen');`],
    ['by an unhandled rejection', `logLines(${lines}); await Promise.reject(new Error('unforeseen'));`],
    [
      'by itself, a while after most lines',
      `logLines(${lines - 1}); await sleep(250); logLines(1, ${lines - 1});`,
    ],
  ])('has all lines, in their order, when the process ends: %s', async (_, source) => {
    expect(numbersIn((await written(source)).replace(/^(?!\{).*\n/gm, ''))).toEqual(upTo(lines));
  });

  it.each(['warn', 'error', 'fatal'])(
    'has a line of the level %s, and all lines before it, if the process is killed after the call',
    async (level) => {
      const source = `logLines(${lines}); logger.${level}({ n: ${lines} }, 'wrong'); process.kill(process.pid, 'SIGKILL');`;
      expect(numbersIn(await written(source))).toEqual(upTo(lines + 1));
    },
  );

  it('has the line of a request only with its block, whatever its level, or with the next line that is written at once', async () => {
    const text = await written(`
      const { createRequestLog } = await import('${new URL('../../src/telemetry/requestLog.ts', import.meta.url)}');
      const { readFileSync } = await import('node:fs');
      const log = createRequestLog(logger);
      const exchange = { id: 'a', endpoint: 'rest', request: { method: 'GET' } };
      log({ exchange, status: 503, duration: 1 });
      const before = readFileSync('${join(folder, 'log')}', 'utf8');
      logger.warn({ before }, 'then');
      process.kill(process.pid, 'SIGKILL');`);
    expect(
      text
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line)),
    ).toMatchObject([
      { level: 40, status: 503 },
      { level: 40, before: '', msg: 'then' },
    ]);
  });

  it('loses at most the last 4 KiB, and only whole lines, if the process is killed', async () => {
    const text = await written(`logLines(${lines}); process.kill(process.pid, 'SIGKILL');`);
    const all = await written(`logLines(${lines});`);
    expect(numbersIn(text)).toEqual(upTo(numbersIn(text).length));
    expect(all.length - text.length).toBeGreaterThan(0);
    expect(all.length - text.length).toBeLessThanOrEqual(4_096);
  });

  it('has a line within a tenth of a second, although none follows it', async () => {
    await written(
      `logLines(1); process.stdout.write('ready'); await sleep(60_000);`,
      async ({ ready, child }) => {
        await ready;
        await expect.poll(() => numbersIn(readFileSync(join(folder, 'log'), 'utf8'))).toEqual([0]);
        child.kill('SIGKILL');
      },
    );
  });

  it('that is truncated for rotation has the next lines at its beginning', async () => {
    const source = `logLines(100); process.once('SIGUSR2', () => { logLines(1, 100); process.exit(); }); process.stdout.write('ready'); await sleep(60_000);`;
    const text = await written(source, async ({ ready, child }) => {
      await ready;
      await expect.poll(() => numbersIn(readFileSync(join(folder, 'log'), 'utf8'))).toHaveLength(100);
      truncateSync(join(folder, 'log'));
      child.kill('SIGUSR2');
    });
    expect(numbersIn(text)).toEqual([100]);
  });
});

describe('a log in a pipe or a socket', () => {
  it.each([
    ['a socket', ''],
    ['a pipe', '2>&1 | cat >&2'],
    ['a pipe with a slow reader', '2>&1 | (sleep 0.3; cat) >&2'],
  ])('has all lines when the process ends: %s', async (_, redirection) => {
    const script = `${prelude} logLines(${lines}); process.exit();`;
    const { stderr } = await inShell(
      `"$0" --import tsx --input-type=module --eval "$1" ${redirection}`,
      script,
    );
    expect(numbersIn(stderr)).toEqual(upTo(lines));
  });

  it('whose reader is too slow delays nothing, buffers a limited amount, and has a line with the number of lost lines', async () => {
    // More lines than the pipe and the gateway buffer, and then one for which there is room again.
    const source = `
      process.on('SIGUSR2', () => { logLines(1, 20_000); process.exit(); });
      logLines(20_000);
      process.stdout.write('ready');
      await sleep(60_000);`;
    const { child, ready, exit } = start(source, 'pipe');
    child.stderr?.pause();
    await ready;
    let text = '';
    child.stderr?.on('data', (data) => {
      text += data;
    });
    child.stderr?.resume();
    await expect.poll(() => text).toContain('"lost"');
    child.kill('SIGUSR2');
    await Promise.all([exit, once(child, 'close')]);
    const entries = entriesIn(text);
    const before = entries.findIndex(({ lost }) => lost !== undefined);
    expect(entries.slice(0, before).map(({ n }) => n)).toEqual(upTo(before));
    expect(entries[before]).toMatchObject({
      level: 40,
      lost: 20_000 - before,
      msg: 'lines of the log were left out',
    });
    expect(entries.slice(before + 1).map(({ n }) => n)).toEqual([20_000]);
    expect(Buffer.byteLength(text)).toBeLessThan(2 * 1024 * 1024);
  });

  it('whose reader is always a little behind loses no lines', async () => {
    // Ten times the buffer, and never more than a quarter of it at once: the next lines are logged when some were read.
    const source = `
      process.on('SIGUSR2', () => process.exit());
      let from = 1_500;
      logLines(from);
      process.stdout.write('ready');
      process.stdin.on('data', (acknowledged) => {
        for (const _ of acknowledged) { logLines(500, from); from += 500; }
      });`;
    const child = spawn(process.execPath, [
      '--import',
      'tsx',
      '--input-type=module',
      '--eval',
      prelude + source,
    ]);
    let text = '';
    let lines = 0;
    let acknowledged = 0;
    child.stderr.setEncoding('latin1').on('data', (data: string) => {
      text += data;
      lines += data.split('\n').length - 1;
      for (; acknowledged < 100 && lines >= (acknowledged + 1) * 500; acknowledged++) child.stdin.write('.');
      if (text.includes('"n":51499,')) child.kill('SIGUSR2');
    });
    await once(child, 'close');
    expect(numbersIn(text)).toEqual(upTo(51_500));
  });

  it('that several processes write to has only whole lines', async () => {
    const script = `${prelude} logLines(2_000);`;
    const source = `{ "$0" --import tsx --input-type=module --eval "$1" & "$0" --import tsx --input-type=module --eval "$1"; wait; } 2>&1 | cat >&2`;
    const { stderr } = await inShell(source, script);
    expect(numbersIn(stderr).sort((one, other) => one - other)).toEqual(upTo(2_000).flatMap((n) => [n, n]));
  });

  it('whose reader has closed it does not stop the process', async () => {
    const { child, ready, exit } = start(
      `process.once('SIGUSR2', () => { logLines(${lines}); logger.error('wrong'); process.exit(7); }); process.stdout.write('ready'); await sleep(60_000);`,
      'pipe',
    );
    await ready;
    child.stderr?.destroy();
    child.kill('SIGUSR2');
    expect(await exit).toEqual([7, null]);
  });
});
