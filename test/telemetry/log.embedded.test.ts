/** Errors in the log: enough to find their cause, and no personal data. */

import { execFile } from 'node:child_process';
import { promisify, stripVTControlCharacters } from 'node:util';
import { describe, expect, it, vi } from 'vitest';
import { createLogger, describeError } from '../../src/telemetry/log.ts';
import { newFolder } from '../support/newFolder.ts';
import { databaseWith } from '../support/setUp.ts';

const { database } = await databaseWith();
await database.client.user.create({ data: { id: 1_000, username: 'secret' } });

const failureOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => expect.fail('there was no error'),
    (error: unknown) => error,
  );
const sql = (text: string, values: unknown[] = []) => database.pool.query(text, values);

it.each<[string, () => Promise<unknown>, string, string]>([
  [
    'a duplicate row',
    () => sql(`INSERT INTO "User" (username) VALUES ('secret')`),
    '23505',
    'duplicate key value violates unique constraint "User_username_key"',
  ],
  [
    'an invalid value',
    () => sql('SELECT $1::int', ['secret "x"\n\nsecret']),
    '22P02',
    'invalid input syntax for type integer: …',
  ],
])(
  'an error of the database is described by its type, code, message and stack, without values: %s',
  async (_, fail, code, message) => {
    const described = describeError(await failureOf(fail()));
    expect(described).toMatchObject({ code, message });
    expect(described.type).toBe('DatabaseError');
    expect(described.stack).toMatch(/^ +at /);
    expect(JSON.stringify(described)).not.toMatch(/secret|7777777777/);
  },
);

it('causes are described up to three deep, and those that are not errors are left out', () => {
  const chain = [1, 2, 3, 4, 5].reduceRight<unknown>(
    (cause, depth) => new TypeError(`number ${depth}`, { cause }),
    { token: 'secret' },
  );
  const text = JSON.stringify(describeError(chain));
  expect(text.match(/number \d/g)).toEqual([1, 2, 3, 4].map((depth) => `number ${depth}`));
  expect(text).not.toContain('secret');
  expect(JSON.stringify(describeError(new Error('it failed', { cause: 'secret' })))).not.toContain('cause');
});

it.each([
  ['relation "A" has no column "B"', 'relation "A" has no column "B"'],
  [
    'index "A", type "B", function "C", table "D" of "secret"',
    'index "A", type "B", function "C", table "D" of …',
  ],
  ['it is \'secret\' or "secret"', 'it is …'],
])('the message %j is logged as %j', (message, logged) => {
  expect(describeError(new Error(message)).message).toBe(logged);
});

it('a thrown value that is not an error is not logged', () => {
  expect(describeError({ token: 'secret' })).toEqual({ type: 'object', message: '', stack: '' });
});

it('the log has these descriptions of errors', async () => {
  const lines: string[] = [];
  const logger = createLogger('info', { write: (line) => lines.push(line) });
  logger.debug('not said');
  logger.error({ err: await failureOf(sql('SELECT $1::int', ['secret'])) }, 'request failed');
  expect(lines).toHaveLength(1);
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ msg: 'request failed', err: { code: '22P02' } });
  expect(lines[0]).not.toContain('secret');
});

describe('the destination of the log', () => {
  /** What a process writes to standard error that logs before it ends. */
  const written = (source: string, redirection = '') =>
    promisify(execFile)(
      '/bin/sh',
      [
        '-c',
        `"$0" --import tsx --input-type=module --eval "$1" ${redirection}`,
        process.execPath,
        `import { createLogger, standardError } from '${new URL('../../src/telemetry/log.ts', import.meta.url)}';
       const logger = createLogger('info', await standardError());
       ${source}`,
      ],
      { maxBuffer: 16 * 1024 * 1024 },
    ).then(({ stderr }) => stderr.split('\n').filter((line) => line.startsWith('{')));

  it.each([
    ['a socket', ''],
    ['a pipe', '2>&1 | cat >&2'],
  ])('has all lines in their order when the process ends, in %s', async (_, redirection) => {
    const lines = await written(
      `for (let n = 0; n < 200; n++) logger.info({ n }, 'x'.repeat(100)); process.exit();`,
      redirection,
    );
    expect(lines.map((line) => JSON.parse(line).n)).toEqual(Array.from({ length: 200 }, (_, n) => n));
  });

  it('has a line a moment later, although none follows it', async () => {
    const lines = await written(
      `logger.info('one'); setTimeout(() => process.kill(process.pid, 'SIGKILL'), 800);`,
      '|| true',
    );
    expect(lines.map((line) => JSON.parse(line).msg)).toEqual(['one']);
  });

  it('has further lines, whole, once a slow reader has read, is limited, and delays nothing', async () => {
    const folder = newFolder();
    // Longer than what a pipe takes as a whole, so that writes end within a character.
    const lines = await written(
      `import { writeFileSync } from 'node:fs';
       for (let n = 0; n < 2_000; n++) logger.info({ n }, 'я€😀'.repeat(1_000));
       writeFileSync('${folder}/written', '');
       setTimeout(() => { logger.info('last'); process.exit(); }, 2_500);`,
      `2>&1 | (until [ -e ${folder}/written ]; do sleep 0.1; done; cat) >&2`,
    );
    const entries = lines.map((line) => JSON.parse(line));
    expect(entries.pop()).toMatchObject({ msg: 'last' });
    expect(entries.map(({ n }) => n)).toEqual(entries.map((_, n) => n));
    expect(new Set(entries.map(({ msg }) => msg))).toEqual(new Set(['я€😀'.repeat(1_000)]));
    expect(entries.length).toBeLessThan(1_000);
  });

  it('ends no process whose reader has gone', async () => {
    const lines = await written(
      `setTimeout(() => logger.error('gone'), 200);
       setTimeout(() => { console.log('{"is":"alive"}'); process.exit(); }, 600);`,
      '3>&2 2>&1 >&3 3>&- | true',
    );
    expect(lines).toEqual(['{"is":"alive"}']);
  });
});

it.each<[object, string, string]>([
  [
    { request: 'id', endpoint: 'rest', method: 'GET', operation: 'GET /dtt', status: 200, ms: 0.42 },
    'responded',
    'INFO: responded GET /dtt 200 0.42 ms {"request":"id","endpoint":"rest","method":"GET"}',
  ],
  [{}, 'a\u001b[2Jb\u009b', 'INFO: a [2Jb'],
  [{ a: '\u001b[2J\u009b' }, 'said', 'INFO: said {"a":"\\u001b[2J "}'],
])('a terminal is shown %o as a line for people', async (entry, message, line) => {
  const restore = [
    setProperty(process.stderr, 'isTTY', true),
    setProperty(process.stderr, 'hasColors', () => false),
  ];
  const write = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  try {
    vi.resetModules();
    const log = await import('../../src/telemetry/log.ts');
    log.createLogger('info', await log.standardError()).info(entry, message);
    const shown = write.mock.calls.map(([text]) => stripVTControlCharacters(String(text)));
    expect(
      shown
        .join('')
        .replace(/^\[[\d:]{8}\] /, '')
        .trimEnd(),
    ).toBe(line);
  } finally {
    write.mockRestore();
    for (const undo of restore) undo();
  }
});

/** @returns a function that restores the property. */
function setProperty(object: object, name: string, value: unknown): () => void {
  const before = Object.getOwnPropertyDescriptor(object, name);
  Object.defineProperty(object, name, { value, configurable: true, writable: true });
  return () => {
    if (before) Object.defineProperty(object, name, before);
    else Reflect.deleteProperty(object, name);
  };
}
