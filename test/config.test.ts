import { describe, expect, it } from 'vitest';
import { readConfig, SetupError } from '../src/config.ts';

function complaintAbout(env: Record<string, string>): string {
  try {
    readConfig(env);
  } catch (error) {
    if (error instanceof SetupError) return error.message;
    throw error;
  }
  throw new Error('nothing was wrong');
}

describe('readConfig', () => {
  const defaults = {
    HOST: '127.0.0.1',
    PORT: 4000,
    DATABASE_URL: undefined,
    DATA_DIR: '.data',
    KEEP_ANSWERS_MB: 64,
    GRAPHIQL: 'on',
    INTROSPECTION: 'on',
    CORS_ORIGINS: undefined,
    PERSISTED_OPERATIONS_FILE: undefined,
    PERSISTED_OPERATIONS: undefined,
    MAX_DEPTH: 20,
    MAX_COMPLEXITY: 20_000,
    MAX_ALIASES: 30,
    MAX_DIRECTIVES: 30,
    MAX_TOKENS: 1_000,
    MAX_BODY_KB: 256,
    LOG_LEVEL: 'info',
    UPSTREAM_URL: undefined,
    UPSTREAM_TOKEN: undefined,
    UPSTREAM_INTERVAL: 60,
  };

  it.each([
    ['nothing is set', {}],
    ['everything is set to nothing', { HOST: '', PORT: '', DATABASE_URL: '', DATA_DIR: '', LOG_LEVEL: '' }],
    ['something else is set', { USER: 'me', HOSTNAME: 'here' }],
  ])('has defaults where %s', (_, env) => {
    expect(readConfig(env)).toMatchObject(defaults);
  });

  it.each([
    [{ HOST: '::' }, { HOST: '::' }],
    [{ HOST: 'localhost' }, { HOST: 'localhost' }],
    [{ PORT: '0' }, { PORT: 0 }],
    [{ PORT: '65535' }, { PORT: 65535 }],
    [{ DATABASE_URL: 'postgres://u:p@h/d' }, { DATABASE_URL: 'postgres://u:p@h/d' }],
    [
      { DATABASE_URL: 'postgresql://u:p@h:5432/d?sslmode=disable' },
      { DATABASE_URL: 'postgresql://u:p@h:5432/d?sslmode=disable' },
    ],
    [{ DATA_DIR: '/var/lib/a folder' }, { DATA_DIR: '/var/lib/a folder' }],
    [{ LOG_LEVEL: 'silent' }, { LOG_LEVEL: 'silent' }],
    [
      { GRAPHIQL: 'off', INTROSPECTION: 'off' },
      { GRAPHIQL: 'off', INTROSPECTION: 'off' },
    ],
    [
      { CORS_ORIGINS: 'https://a.example, http://localhost:5173' },
      { CORS_ORIGINS: ['https://a.example', 'http://localhost:5173'] },
    ],
    [{ MAX_DEPTH: '1' }, { MAX_DEPTH: 1 }],
    [{ MAX_COMPLEXITY: '1000000000' }, { MAX_COMPLEXITY: 1_000_000_000 }],
  ])('takes %o', (env, expected) => {
    expect(readConfig(env)).toMatchObject({ ...defaults, ...expected });
  });

  const url = 'a URL such as postgresql://user:password@host:5432/database';
  const wrongSettings: [name: string, wrong: string, takes: string][] = [
    ['HOST', 'a b', 'a host name or IP address'],
    ['HOST', ' ', 'a host name or IP address'],
    ['LOG_LEVEL', 'INFO', 'one of fatal, error, warn, info, debug, trace, silent'],
  ];
  for (const wrong of ['http', '-1', '65536', '80.5', '1e3', '0x50', ' 80', '99999999999999999999'])
    wrongSettings.push(['PORT', wrong, 'an integer from 0 to 65535']);
  for (const wrong of ['localhost', 'mysql://h/d', 'http://h', '5432', 'postgresql:h'])
    wrongSettings.push(['DATABASE_URL', wrong, url]);

  for (const wrong of [
    '*',
    'null',
    'a.example',
    'https://a.example/',
    'https://a.example:443',
    'https://a.example,',
  ])
    wrongSettings.push([
      'CORS_ORIGINS',
      wrong,
      'origins such as https://app.example.com, separated by commas',
    ]);
  for (const wrong of ['true', 'no', '1']) wrongSettings.push(['GRAPHIQL', wrong, 'on or off']);
  for (const wrong of ['0', '10001', '-1', 'all'])
    wrongSettings.push(['MAX_DEPTH', wrong, 'an integer from 1 to 10000']);
  wrongSettings.push(
    ['PERSISTED_OPERATIONS', 'on', 'only, or nothing'],
    ['PERSISTED_OPERATIONS_FILE', 'operations.txt', 'a path that ends in .json, .graphql or .gql'],
  );

  it.each(wrongSettings)('refuses %s=%j: it takes %s', (name, wrong, takes) => {
    expect(complaintAbout({ [name]: wrong })).toBe(
      `${name} is ${JSON.stringify(wrong)}, but takes ${takes}.`,
    );
  });

  it('names every wrong setting, a line each', () => {
    const lines = complaintAbout({ PORT: 'a', LOG_LEVEL: 'b', HOST: 'fine', DATABASE_URL: 'c' }).split('\n');
    expect(lines.map((line) => line.split(' ', 1)[0])).toEqual(['PORT', 'DATABASE_URL', 'LOG_LEVEL']);
  });

  it.each([
    ['mysql://me:hunter2@host/app', 'mysql://me:***@host/app'],
    ['mysql://me:hun:ter@2@host/app', 'mysql://me:***@host/app'],
    ['mysql://:hunter2@host/app', 'mysql://:***@host/app'],
    ['mysql://host/app?user=me&password=hunter2&x=1', 'mysql://host/app?user=me&password=***&x=1'],
    ['mysql://me@host/app', 'mysql://me@host/app'],
    ['me:hunter2@host/app', '***@host/app'],
    ['postgresql:me:hunter2@host', '***@host'],
    ['postgresql//me:hunter2@host', '***@host'],
    ['postgresql://me:hun\nter2@a b', 'postgresql://me:***@a b'],
  ])('shows %j without its password', (wrong, shown) => {
    expect(complaintAbout({ DATABASE_URL: wrong })).toContain(
      `DATABASE_URL is ${JSON.stringify(shown)}, but`,
    );
  });
});
