import { pino } from 'pino';
import { describe, expect, it, vi } from 'vitest';
import { describeError } from '../../src/telemetry/log.ts';
import { readable, terminal } from '../../src/telemetry/prettyLog.ts';
import { setProperty } from '../support/property.ts';

/** The text of an entry on a terminal, without colours and the time. */
function shown(write: (logger: pino.Logger) => void): string {
  let text = '';
  write(pino({ level: 'trace' }, { write: (line: string) => (text += readable(line, (_, each) => each)) }));
  expect(text).toMatch(/^\d\d:\d\d:\d\d /);
  return text.slice(9);
}

describe('the log on a terminal', () => {
  it('has one line for an entry', () => {
    const details = { endpoint: 'rest', operation: 'GET /dtt/{id}', status: 200, ms: 0.4 };
    expect(shown((logger) => logger.info(details, 'responded'))).toBe(
      'info  responded endpoint=rest operation="GET /dtt/{id}" status=200 ms=0.4\n',
    );
  });

  const id = '1b944ced-25ff-484c-bca5-2ce543c5ef01';
  const request = { request: id, endpoint: 'graphql', method: 'POST' };
  const get = { ...request, endpoint: 'rest', method: 'GET' };
  it.each<[object, string]>([
    [{ ...get, operation: 'GET /dtt', status: 200, ms: 0.42 }, `GET  rest    /dtt 200 0.4 ms ${id}`],
    [
      { ...get, operation: 'GET /lkbx/templates/active', status: 200, ms: 12.6 },
      'GET  rest    /lkbx/templates/active 200 13 ms 1b944ced',
    ],
    [
      { ...request, operation: 'query viewer', status: 401, code: 'UNAUTHENTICATED', ms: 9_999 },
      'POST graphql query viewer 401 UNAUTHENTICATED 9999 ms 1b944ced',
    ],
    [
      {
        ...request,
        operation: 'subscription activeLockSession',
        status: 500,
        code: 'INTERNAL_SERVER_ERROR',
        ms: 12_345,
        cache: 'miss',
      },
      'POST graphql subscription… 500 INTERNAL_SERVER_ERROR 12 s miss 1b944ced',
    ],
    [
      { ...get, method: 'HEAD', operation: 'GET /dtt', status: 304, ms: 1 },
      `HEAD rest    GET /dtt 304 1.0 ms ${id}`,
    ],
    [{ ...get, endpoint: 'page', status: 404, ms: 1 }, `GET  page    - 404 1.0 ms ${id}`],
    [{ ...get, endpoint: 'page', operation: '/', ms: 1 }, `GET  page    / left 1.0 ms ${id}`],
    [
      { ...get, request: 'mine', operation: 'GET /dtt', status: 200, ms: 1 },
      'GET  rest    /dtt 200 1.0 ms mine',
    ],
  ])('has one line of at most 80 columns for a request, with its id last: %o', (entry, line) => {
    const text = shown((logger) => logger.info(entry, 'responded'));
    expect(text).toBe(`${line}\n`);
    expect('12:34:56 '.length + line.length).toBeLessThanOrEqual(80);
  });

  it('has the whole id of a request if the terminal is wider', () => {
    const entry = { time: 0, level: 30, ...get, operation: 'GET /lkbx/templates/active', status: 200, ms: 1 };
    expect(readable(JSON.stringify(entry), (_, each) => each, 100)).toMatch(new RegExp(`1\\.0 ms ${id}\n$`));
  });

  it.each([
    [{ status: 200 }, 'green'],
    [{ status: 200, code: 'NOT_FOUND' }, 'yellow'],
    [{ status: 404 }, 'yellow'],
    [{}, 'yellow'],
    [{ status: 503, code: 'SERVICE_UNAVAILABLE' }, 'red'],
  ])('has the outcome of a request in a colour: %o', (outcome, style) => {
    const entry = { time: 0, level: 30, ...get, ms: 1, ...outcome };
    const text = readable(JSON.stringify(entry), (paint, each) => `<${paint}>${each}</>`);
    expect(text).toContain(`<${style}>${Object.values(outcome).join(' ') || 'left'}</>`);
  });

  it('has a statement as plain SQL, with its time', () => {
    const entry = { request: id, sql: 'SELECT "id" FROM "User"', ms: 0.42 };
    expect(shown((logger) => logger.debug(entry, 'statement'))).toBe(
      'debug 0.4 ms SELECT "id" FROM "User"\n',
    );
  });

  it.each([
    ['trace', 'trace', 'gray'],
    ['debug', 'debug', 'gray'],
    ['info', 'info ', 'green'],
    ['warn', 'warn ', 'yellow'],
    ['error', 'error', 'red'],
    ['fatal', 'fatal', 'red'],
  ] as const)('has the level %s in colour, and the properties of the entry in gray', (level, name, style) => {
    let text = '';
    const write = (line: string) => (text += readable(line, (paint, each) => `<${paint}>${each}</>`));
    pino({ level: 'trace' }, { write })[level]({ a: 1 }, 'said');
    expect(text).toMatch(/^<gray>\d\d:\d\d:\d\d<\/> /);
    expect(text.slice(text.indexOf(' ') + 1)).toBe(`<${style}>${name}</> said <gray>a=1</>\n`);
  });

  it('has one line also for an entry with a custom level and without a message', () => {
    const paint = (style: unknown, each: string) => `<${style}>${each}</>`;
    const line = readable(JSON.stringify({ time: 0, level: 35, a: 1 }), paint);
    expect(line.slice(line.indexOf(' ') + 1)).toBe('<gray>35   </>  <gray>a=1</>\n');
  });

  it('has the time of the entry in the local time zone', () => {
    const time = new Date(2026, 0, 2, 3, 4, 5).getTime();
    expect(readable(JSON.stringify({ time, level: 30, msg: 'said' }), (_, each) => each)).toBe(
      '03:04:05 info  said\n',
    );
  });

  it.each([
    ['GET /dtt', '"GET /dtt"'],
    ['', '""'],
    ['a=b', '"a=b"'],
    ['http://h:1/a_b-c.d', 'http://h:1/a_b-c.d'],
    [['a b'], '["a b"]'],
    [{ a: 1 }, '{"a":1}'],
    [null, 'null'],
    ['a\u0007b', '"a\\u0007b"'],
    ['\u009b', '" "'],
  ])('has the value %j in an unambiguous form', (value, text) => {
    expect(shown((logger) => logger.info({ value }, 'said'))).toBe(`info  said value=${text}\n`);
  });

  it.each([
    [
      'with colours if that is a terminal',
      true,
      '\u001b[90m03:04:05\u001b[39m \u001b[32minfo \u001b[39m said\n',
    ],
    ['without colours if it is not', false, '03:04:05 info  said\n'],
  ])('is written to standard error, %s', (_, isTTY, expected) => {
    vi.stubEnv('FORCE_COLOR', undefined);
    vi.stubEnv('NO_COLOR', undefined);
    const restore = setProperty(process.stderr, 'isTTY', isTTY);
    const written = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    try {
      terminal.write(JSON.stringify({ time: new Date(2026, 0, 2, 3, 4, 5), level: 30, msg: 'said' }));
      expect(written.mock.calls).toEqual([[expected]]);
    } finally {
      written.mockRestore();
      restore();
      vi.unstubAllEnvs();
    }
  });

  it('has the stack of an error below it, without control characters', () => {
    const err = Object.assign(new TypeError('\u001b[2Jno'), { stack: 'TypeError: no\n    at somewhere' });
    expect(shown((logger) => logger.error({ err, request: 'a\u0007b' }, 'failed\u009b2J'))).toBe(
      'error failed 2J request="a\\u0007b"\n  TypeError:  [2Jno\n    at somewhere\n',
    );
  });

  it('has the code and the cause of an error', () => {
    const cause = Object.assign(new Error('refused'), { code: 'ECONNREFUSED', stack: '\n    at connect' });
    const error = Object.assign(new Error('away', { cause }), { stack: '\n    at query' });
    const entry = { time: 0, level: 50, msg: 'failed', err: describeError(error) };
    expect(
      readable(JSON.stringify(entry), (_, each) => each)
        .split('\n')
        .slice(1),
    ).toEqual([
      '  Error: away',
      '    at query',
      '  because of',
      '  Error ECONNREFUSED: refused',
      '    at connect',
      '',
    ]);
  });
});
