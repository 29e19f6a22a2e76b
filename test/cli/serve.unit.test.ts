/** The flags of `dovetail serve`. The gateway itself is tested in `test/server`. */

import { beforeEach, describe, expect, it, vi } from 'vitest';
import { runHere } from '../support/runHere.ts';

const serve = vi.hoisted(() => vi.fn(async () => {}));
vi.mock('../../src/server/serve.ts', () => ({ serve }));
beforeEach(() => {
  serve.mockClear();
});

describe('dovetail serve', () => {
  it('lists the flags with --help, each with its variable and default', async () => {
    const { code, stdout, stderr } = await runHere(['serve', '--help'], {});
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const text = stdout.replace(/\s+/g, ' ');
    for (const line of [
      '--host <address> address to listen on (HOST; a host name or IP address, without a port or brackets; default: 127.0.0.1)',
      '--port <number> port to listen on; 0 picks a free one (PORT; an integer from 0 to 65535; default: 4000)',
      '--database-url <url> PostgreSQL (15 or later) to use instead of the embedded one (DATABASE_URL; a URL such as',
      '--data-dir <folder> folder of the embedded database; unused with DATABASE_URL (DATA_DIR; a path; default: .data)',
      '--workers <count> processes that serve,',
      '--log-level <level> least important log lines to print (LOG_LEVEL; one of fatal, error, warn,',
      'A flag goes before the variable in its brackets.',
    ])
      expect(text).toContain(line);
  });

  it('takes flags as settings, which override those of the environment', async () => {
    const flags = {
      '--host': '::1',
      '--port': '0',
      '--database-url': 'postgresql://h/d',
      '--data-dir': 'd',
      '--workers': 'auto',
      '--log-level': 'debug',
    };
    const { code, stderr } = await runHere(['serve', ...Object.entries(flags).flat()], { PORT: '1' });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(serve.mock.calls).toEqual([
      [
        {
          HOST: '::1',
          PORT: '0',
          DATABASE_URL: 'postgresql://h/d',
          DATA_DIR: 'd',
          WORKERS: 'auto',
          LOG_LEVEL: 'debug',
        },
      ],
    ]);
    await runHere(['serve'], { PORT: '1' });
    expect(serve.mock.lastCall).toEqual([{}]);
  });

  it.each([
    [
      'a port whose flag npm consumed',
      ['serve', '4001'],
      "error: too many arguments for 'serve'. Expected 0 arguments but got 1. Flags of npm start come behind two dashes: npm start -- --port 4001\n",
    ],
    [
      'the name of the npm script',
      ['start', '--port', '4001'],
      "error: unknown command 'start'\n(Did you mean serve?)\n",
    ],
  ])('has a hint for %s', async (_, args, stderr) => {
    expect(await runHere(args, {})).toEqual({ code: 2, stdout: '', stderr });
    expect(serve).not.toHaveBeenCalled();
  });

  it.each([
    [['--port', 'http'], '--port is "http", but takes an integer from 0 to 65535.'],
    [['--port', ''], '--port is "", but takes an integer from 0 to 65535.'],
    [['--workers', '0'], '--workers is "0", but takes an integer from 1 to 256, or auto.'],
    [
      ['--database-url', 'mysql://me:hunter2@h/d'],
      '--database-url is "mysql://me:***@h/d", but takes a URL such as postgresql://user:password@host:5432/database.',
    ],
  ])('exits with 2 for %j, and prints the valid values', async (args, message) => {
    expect(await runHere(['serve', ...args], {})).toEqual({
      code: 2,
      stdout: '',
      stderr: `error: ${message}\n`,
    });
    expect(serve).not.toHaveBeenCalled();
  });
});
