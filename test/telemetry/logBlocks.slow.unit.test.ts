/** What becomes of the lines of the log, however the process ends that writes them, and whoever reads them. */

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

const log = new URL('../../dist/telemetry/log.js', import.meta.url);
const prelude = `
  import { setTimeout as sleep } from 'node:timers/promises';
  import { createLogger } from '${log}';
  const logger = createLogger('info');
  const say = (count, from = 0) => { for (let n = from; n < from + count; n++) logger.info({ n }, 'x'.repeat(100)); };
`;

/** Runs a command that may start Node as `$0` with a script as `$1`. */
const inShell = (command: string, script: string) =>
  promisify(execFile)('/bin/sh', ['-c', command, process.execPath, script], { maxBuffer: 10 * 1024 * 1024 });

type Stderr = number | 'pipe';

/** Runs a script that logs, until it says that it is ready or ends. */
function start(source: string, stderr: Stderr) {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', prelude + source], {
    stdio: ['ignore', 'pipe', stderr],
  });
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

/** What a script has written to a file when it has ended. */
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

describe('in a file', () => {
  it.each([
    ['at the end', `say(${lines});`],
    ['by process.exit', `say(${lines}); process.exit(1);`],
    ['by an exception', `say(${lines}); throw new Error('unforeseen');`],
    ['by a rejection', `say(${lines}); await Promise.reject(new Error('unforeseen'));`],
    ['at the end, a while later', `say(${lines - 1}); await sleep(250); say(1, ${lines - 1});`],
  ])('all lines are there, in their order, when the process ends: %s', async (_, source) => {
    expect(numbersIn((await written(source)).replace(/^(?!\{).*\n/gm, ''))).toEqual(upTo(lines));
  });

  it.each(['warn', 'error', 'fatal'])(
    'a line of the level %s, and all before it, are there when the call returns, if the process is killed then',
    async (level) => {
      const source = `say(${lines}); logger.${level}({ n: ${lines} }, 'wrong'); process.kill(process.pid, 'SIGKILL');`;
      expect(numbersIn(await written(source))).toEqual(upTo(lines + 1));
    },
  );

  it('a line of a request waits for its block, whatever its level, until a line comes that does not', async () => {
    const text = await written(`
      const { createRequestLog } = await import('${new URL('../../dist/telemetry/requestLog.js', import.meta.url)}');
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

  it('of a process that is killed no more is lost than the last 4 KiB, and nothing but whole lines', async () => {
    const text = await written(`say(${lines}); process.kill(process.pid, 'SIGKILL');`);
    const all = await written(`say(${lines});`);
    expect(numbersIn(text)).toEqual(upTo(numbersIn(text).length));
    expect(all.length - text.length).toBeGreaterThan(0);
    expect(all.length - text.length).toBeLessThanOrEqual(4_096);
  });

  it('a line is there after a tenth of a second, although nothing follows it', async () => {
    await written(`say(1); process.stdout.write('ready'); await sleep(60_000);`, async ({ ready, child }) => {
      await ready;
      await vi.waitFor(() => expect(numbersIn(readFileSync(join(folder, 'log'), 'utf8'))).toEqual([0]));
      child.kill('SIGKILL');
    });
  });

  it('that is copied and cut off to rotate it, the next lines stand at its beginning', async () => {
    const source = `say(100); process.once('SIGUSR2', () => { say(1, 100); process.exit(); }); process.stdout.write('ready'); await sleep(60_000);`;
    const text = await written(source, async ({ ready, child }) => {
      await ready;
      await vi.waitFor(() => expect(numbersIn(readFileSync(join(folder, 'log'), 'utf8'))).toHaveLength(100));
      truncateSync(join(folder, 'log'));
      child.kill('SIGUSR2');
    });
    expect(numbersIn(text)).toEqual([100]);
  });
});

describe('in a pipe or a socket', () => {
  it.each([
    ['a socket', ''],
    ['a pipe', '2>&1 | cat >&2'],
    ['a pipe with a slow reader', '2>&1 | (sleep 0.3; cat) >&2'],
  ])('all lines are there when the process ends: %s', async (_, redirection) => {
    const script = `${prelude} say(${lines}); process.exit();`;
    const { stderr } = await inShell(`"$0" --input-type=module --eval "$1" ${redirection}`, script);
    expect(numbersIn(stderr)).toEqual(upTo(lines));
  });

  it('whose reader does not keep up, nobody waits, memory is bounded, and what was left out is told', async () => {
    // More than what the pipe and the gateway hold, and then as much as there is room for again.
    const source = `
      process.on('SIGUSR2', () => { say(1, 20_000); process.exit(); });
      say(20_000);
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
    await vi.waitFor(() => expect(text).toContain('"lost"'));
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

  it('whose reader is a little behind all the time, nothing is left out', async () => {
    // Ten times what may wait, and never more than a quarter of it at once: the next lines come when some were read.
    const source = `
      process.on('SIGUSR2', () => process.exit());
      let from = 1_500;
      say(from);
      process.stdout.write('ready');
      process.stdin.on('data', (acknowledged) => {
        for (const _ of acknowledged) { say(500, from); from += 500; }
      });`;
    const child = spawn(process.execPath, ['--input-type=module', '--eval', prelude + source]);
    let text = '';
    let lines = 0;
    let asked = 0;
    child.stderr.setEncoding('latin1').on('data', (data: string) => {
      text += data;
      lines += data.split('\n').length - 1;
      for (; asked < 100 && lines >= (asked + 1) * 500; asked++) child.stdin.write('.');
      if (text.includes('"n":51499,')) child.kill('SIGUSR2');
    });
    await once(child, 'close');
    expect(numbersIn(text)).toEqual(upTo(51_500));
  });

  it('that several processes write to, lines stay whole', async () => {
    const script = `${prelude} say(2_000);`;
    const source = `{ "$0" --input-type=module --eval "$1" & "$0" --input-type=module --eval "$1"; wait; } 2>&1 | cat >&2`;
    const { stderr } = await inShell(source, script);
    expect(numbersIn(stderr).sort((one, other) => one - other)).toEqual(upTo(2_000).flatMap((n) => [n, n]));
  });

  it('that nobody reads any more, the process goes on', async () => {
    const { child, ready, exit } = start(
      `process.once('SIGUSR2', () => { say(${lines}); logger.error('wrong'); process.exit(7); }); process.stdout.write('ready'); await sleep(60_000);`,
      'pipe',
    );
    await ready;
    child.stderr?.destroy();
    child.kill('SIGUSR2');
    expect(await exit).toEqual([7, null]);
  });
});
