/** The text that a start prints. Its commands are run in `serve.slow.test.ts` and `.ci/run`. */

import { describe, expect, it, vi } from 'vitest';
import { type Banner, bannerOf } from '../../src/server/banner.ts';
import { readConfig } from '../support/settings.ts';

const url = 'http://127.0.0.1:4000';
const print = (settings: Record<string, string>, banner: Partial<Banner> = {}) =>
  bannerOf(readConfig(settings), { url, hasUsers: true, workers: 1, ...banner });

const quiet = { CONSOLE: 'off', GRAPHIQL: 'off', INTROSPECTION: 'off' };

/** The lines of the banner without the curl commands. */
const linesOf = (text: string) =>
  text.split('\n').filter((line) => line !== '' && !line.startsWith('  curl '));

describe('the banner', () => {
  it.each<[string, Record<string, string>, Partial<Banner>, string[]]>([
    [
      'that it listens on every address, the metrics, and why there is one process',
      { HOST: '::', WORKERS: '4', ...quiet },
      {
        shownToken: 'dvt_x',
        lines: [
          ['Token', 'dvt_x'],
          ['Metrics', 'http://[::1]:9464/metrics'],
        ],
      },
      [
        '  Start here  http://127.0.0.1:4000  (listens on every address, HOST ::)',
        '  Database    .data (embedded)',
        '  Token       dvt_x',
        '  Metrics     http://[::1]:9464/metrics',
        '  Workers     1: the embedded database belongs to one process. Set DATABASE_URL for more.',
      ],
    ],
    [
      'the address of clients, and where it listens for the proxy',
      { HOST: '0.0.0.0', PUBLIC_URL: 'https://home.example/dovetail', GRAPHIQL: 'off' },
      { shownToken: 'dvt_x' },
      [
        '  Start here      https://home.example/dovetail',
        '  Listens on      http://127.0.0.1:4000  (listens on every address, HOST 0.0.0.0)',
        '  Console         https://home.example/dovetail/console',
        '  REST reference  https://home.example/dovetail/docs',
        '  Database        .data (embedded)',
      ],
    ],
    [
      'the command to create a token if there is none to show',
      { DATA_DIR: '/data', ...quiet },
      {},
      [
        '  Start here  http://127.0.0.1:4000',
        '  Database    /data (embedded)',
        '  A token for a user, who can create more with it in the console:',
        '    DATA_DIR=/data npx dovetail-gateway token create --user NAME --name laptop --scope manage',
      ],
    ],
  ])('has %s', (_, settings, banner, lines) => {
    expect(linesOf(print(settings, banner))).toEqual(['Dovetail is running.', ...lines]);
  });

  it.each([
    ['postgresql://me:hunter2@db.example.com/dovetail', 'dovetail on db.example.com:5432'],
    ['postgres://me:hunter2@db.example.com:6543/a%20b?sslmode=disable', 'a b on db.example.com:6543'],
    ['postgresql://me:hunter2@localhost/d?host=/run/postgresql', 'd on /run/postgresql:5432'],
    ['postgresql://me:hunter2@/d?host=/cloudsql/a:b:c', 'd on /cloudsql/a:b:c:5432'],
    ['postgresql://[::1]/d', 'd on [::1]:5432'],
    ['postgresql://h/d%1b%5B31m', 'd [31m on h:5432'],
  ])('names the database of %s in one line, without the user and the password', (DATABASE_URL, name) => {
    const text = print({ DATABASE_URL });
    expect(text).toContain(`  Database        ${name}\n`);
    expect(text).not.toContain('hunter2');
    expect(text.includes('password in the place of ***')).toBe(DATABASE_URL.includes('hunter2'));
  });

  it('has the commands of the container where the gateway runs in one', () => {
    vi.stubEnv('DOVETAIL_COMMAND', 'docker compose exec gateway dovetail');
    const settings = { DATABASE_URL: 'postgresql://me:hunter2@postgres/d', PUBLIC_URL: 'https://a.example' };
    const text = print(settings, { hasUsers: false });
    expect(text).toContain('Create one in either way:');
    expect(text).toContain('https://a.example/guides/operations#users');
    expect(text.match(/curl https:\/\/a\.example\//g)).toHaveLength(2);
    expect(text).toContain('\n      docker compose exec gateway dovetail user create me --tier ultra\n');
    expect(text).not.toMatch(/npx|\*\*\*/);
  });

  it('offers no query that PERSISTED_OPERATIONS=only rejects', () => {
    const text = print({ PERSISTED_OPERATIONS: 'only', PERSISTED_OPERATIONS_FILE: 'f.json' });
    expect(text).not.toContain('/graphql');
    expect(text).toContain('/api/v1/dtt/templates/active');
  });
});
