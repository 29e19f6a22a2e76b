/** The flags of `dovetail serve`. The gateway itself is tested in `test/server`. */

import { beforeEach, describe, expect, it, vi } from 'vitest';
import { runHere } from '../support/runHere.ts';

const serve = vi.hoisted(() => vi.fn(async () => {}));
vi.mock('../../src/server/serve.ts', () => ({ serve }));
beforeEach(() => {
  serve.mockClear();
});

describe('dovetail serve', () => {
  it('lists the flags with --help, each with its variable', async () => {
    const { code, stdout, stderr } = await runHere(['serve', '--help'], {});
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    for (const [flag, name] of Object.entries({
      host: 'HOST',
      port: 'PORT',
      'database-url': 'DATABASE_URL',
      'data-dir': 'DATA_DIR',
      workers: 'WORKERS',
      'log-level': 'LOG_LEVEL',
    }))
      expect(stdout.replace(/\s+/g, ' ')).toMatch(
        new RegExp(`--${flag} <\\w+> [^(]*(\\([^)]*\\) [^(]*)?\\(${name};`),
      );
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
