import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { readable } from '../src/terminal.ts';

/** What a terminal shows of an entry, without colours and the time. */
function shown(write: (logger: pino.Logger) => void): string {
  let text = '';
  write(pino({ level: 'trace' }, { write: (line: string) => (text += readable(line, (_, each) => each)) }));
  expect(text).toMatch(/^\d\d:\d\d:\d\d /);
  return text.slice(9);
}

describe('on a terminal', () => {
  it('an entry is a line', () => {
    const details = { door: 'rest', operation: 'GET /dtt/{id}', status: 200, ms: 0.4 };
    expect(shown((logger) => logger.info(details, 'answered'))).toBe(
      'info  answered door=rest operation="GET /dtt/{id}" status=200 ms=0.4\n',
    );
  });

  it('an error has its stack below, and cannot make the terminal do anything', () => {
    const err = Object.assign(new TypeError('\u001b[2Jno'), { stack: 'TypeError: no\n    at somewhere' });
    expect(shown((logger) => logger.error({ err, request: 'a\u0007b' }, 'failed\u009b2J'))).toBe(
      'error failed 2J request="a\\u0007b"\n  TypeError:  [2Jno\n    at somewhere\n',
    );
  });
});
