/** The flags of `dovetail serve`. The gateway itself is tested in `test/server`. */

import { beforeEach, expect, it, vi } from 'vitest';
import { runHere } from '../support/runHere.ts';

const serve = vi.hoisted(() => vi.fn(async () => {}));
vi.mock('../../src/server/serve.ts', () => ({ serve }));
beforeEach(() => {
  serve.mockClear();
});

const flags = {
  '--host': ['HOST', '::1'],
  '--port': ['PORT', '0'],
  '--database-url': ['DATABASE_URL', 'postgresql://h/d'],
  '--data-dir': ['DATA_DIR', 'd'],
  '--workers': ['WORKERS', 'auto'],
  '--log-level': ['LOG_LEVEL', 'debug'],
} as const;

it('lists the flags with --help, each with its variable', async () => {
  const { code, stdout, stderr } = await runHere(['serve', '--help'], {});
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  for (const [flag, [name]] of Object.entries(flags))
    expect(stdout.replace(/\s+/g, ' ')).toMatch(
      new RegExp(`${flag} <\\w+> [^(]*(\\([^)]*\\) [^(]*)?\\(${name};`),
    );
});

it('names a variable that is similar to a setting', async () => {
  const { stderr } = await runHere(['serve'], { LOGLEVEL: 'debug' });
  expect(stderr).toBe('Unknown setting LOGLEVEL (ignored). Did you mean LOG_LEVEL?\n');
});

it.each(['serve', 'start'])(
  '`%s` takes flags as settings, which override those of the environment',
  async (name) => {
    const given = Object.entries(flags).flatMap(([flag, [, value]]) => [flag, value]);
    const { code, stderr } = await runHere([name, ...given], { PORT: '1', PGHOST: 'h' });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(serve).toHaveBeenCalledExactlyOnceWith(Object.fromEntries(Object.values(flags)));
    await runHere([name], { PORT: '1' });
    expect(serve).toHaveBeenLastCalledWith({});
  },
);

it('has a hint for a port whose flag npm consumed', async () => {
  const { code, stdout, stderr } = await runHere(['serve', '4001'], {});
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain('Put flags of npm start after `--`: npm start -- --port 4001\n');
  expect(serve).not.toHaveBeenCalled();
});
