import { availableParallelism } from 'node:os';
import { describe, expect, it } from 'vitest';
import {
  type Config,
  commandLine,
  isOrigin,
  readConfig,
  settings,
  shellWord,
  workersOf,
} from '../../src/config/config.ts';
import { SetupError } from '../../src/errors.ts';

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
  it('rejects a renamed setting with its new name', () => {
    expect(complaintAbout({ KEEP_ANSWERS_MB: '64', RATE_LIMIT_STRANGERS: '1', PORT: 'x' })).toBe(
      `PORT is "x", but takes an integer from 0 to 65535.
KEEP_ANSWERS_MB is called RESPONSE_CACHE_MB now.
RATE_LIMIT_STRANGERS is called RATE_LIMIT_ANONYMOUS now.`,
    );
    expect(readConfig({ KEEP_ANSWERS_MB: '' }).RESPONSE_CACHE_MB).toBe(64);
  });

  const defaults = readConfig({});

  it.each([
    ['settings are empty', { HOST: '', PORT: '', DATABASE_URL: '', DATA_DIR: '', LOG_LEVEL: '' }],
    ['only other variables are set', { USER: 'me', HOSTNAME: 'here' }],
  ])('returns the defaults when %s', (_, env) => {
    expect(readConfig(env)).toEqual(defaults);
  });

  const primary = { DATABASE_URL: 'postgres://h/d' };
  const accepted: [env: Record<string, string>, expected: Partial<Config>][] = [
    [{ HOST: '::' }, { HOST: '::' }],
    [{ HOST: 'localhost' }, { HOST: 'localhost' }],
    [{ HOST: 'fe80::1%eth0' }, { HOST: 'fe80::1%eth0' }],
    [{ HOST: 'my_host.example' }, { HOST: 'my_host.example' }],
    [{ PORT: '0' }, { PORT: 0 }],
    [{ PORT: '65535' }, { PORT: 65535 }],
    [{ DATABASE_URL: 'postgres://u:p@h/d' }, { DATABASE_URL: 'postgres://u:p@h/d' }],
    [
      { ...primary, DATABASE_REPLICA_URLS: 'postgres://a/d, postgres://b/d postgres://a/d' },
      { ...primary, DATABASE_REPLICA_URLS: ['postgres://a/d', 'postgres://b/d'] },
    ],
    [
      { DATABASE_URL: 'postgresql://u:p@h:5432/d?sslmode=disable' },
      { DATABASE_URL: 'postgresql://u:p@h:5432/d?sslmode=disable' },
    ],
    [
      { ...primary, DATABASE_REPLICA_URLS: ' postgres://a/d ' },
      { ...primary, DATABASE_REPLICA_URLS: ['postgres://a/d'] },
    ],
    [
      { DATABASE_URL: 'postgres://pooler/d', DATABASE_DIRECT_URL: 'postgres://h/d' },
      { DATABASE_URL: 'postgres://pooler/d', DATABASE_DIRECT_URL: 'postgres://h/d' },
    ],
    [{ DATA_DIR: '/var/lib/a folder' }, { DATA_DIR: '/var/lib/a folder' }],
    [{ DATA_DIR: 'd' }, { DATA_DIR: 'd' }],
    [{ LOG_LEVEL: 'silent' }, { LOG_LEVEL: 'silent' }],
    [
      { CONSOLE: 'off', GRAPHIQL: 'off', INTROSPECTION: 'off' },
      { CONSOLE: 'off', GRAPHIQL: 'off', INTROSPECTION: 'off' },
    ],
    [
      { CORS_ORIGINS: 'https://a.example/, http://localhost:5173' },
      { CORS_ORIGINS: ['https://a.example', 'http://localhost:5173'] },
    ],
    [{ CORS_ORIGINS: 'capacitor://localhost/' }, { CORS_ORIGINS: ['capacitor://localhost'] }],
    [{ UPSTREAM_URL: 'https://h/api/v1//' }, { UPSTREAM_URL: 'https://h/api/v1' }],
    [{ MAX_DEPTH: '007' }, { MAX_DEPTH: 7 }],
    [{ WORKERS: 'auto' }, { WORKERS: 'auto' }],
    [{ SHOW_DEMO_TOKEN: 'on' }, { SHOW_DEMO_TOKEN: 'on' }],
  ];
  for (const file of ['a.json', 'a.graphql', '/b/a.gql'])
    accepted.push([
      { PERSISTED_OPERATIONS_FILE: file, PERSISTED_OPERATIONS: 'only' },
      { PERSISTED_OPERATIONS_FILE: file, PERSISTED_OPERATIONS: 'only' },
    ]);
  for (const url of ['http://localhost:4318', 'https://otel.example/a'])
    accepted.push([
      { OTEL_EXPORTER_OTLP_ENDPOINT: url, UPSTREAM_URL: url, UPSTREAM_TOKEN: '!~' },
      { OTEL_EXPORTER_OTLP_ENDPOINT: url, UPSTREAM_URL: url, UPSTREAM_TOKEN: '!~' },
    ]);
  for (const CHANGE_FEED of ['auto', 'notify'] as const) accepted.push([{ CHANGE_FEED }, { CHANGE_FEED }]);
  accepted.push([
    { CHANGE_FEED: 'logical', DATABASE_URL: 'postgres://h/d' },
    { CHANGE_FEED: 'logical', DATABASE_URL: 'postgres://h/d' },
  ]);
  for (const MCP of ['off', 'read', 'write'] as const) accepted.push([{ MCP }, { MCP }]);
  it.each(accepted)('accepts %o', (env, expected) => {
    expect(readConfig(env)).toEqual({ ...defaults, ...expected });
  });

  const ranges = Object.entries(settings).flatMap(([name, { takes }]) => {
    const [, min, max] = /^an integer from (\d+) to (\d+)/.exec(takes) ?? [];
    return max === undefined ? [] : [[name, Number(min), Number(max)] as const];
  });
  it.each(ranges)('accepts for %s only an integer from %i to %i', (name, min, max) => {
    const beside = name.startsWith('UPSTREAM_') ? { UPSTREAM_URL: 'https://h/api/v1' } : {};
    for (const border of [min, max])
      expect(readConfig({ ...beside, [name]: String(border) })).toEqual({
        ...defaults,
        ...beside,
        [name]: border,
      });
    const takes = `an integer from ${min} to ${max}${name === 'WORKERS' ? ', or auto' : ''}`;
    for (const beyond of [min - 1, max + 1, `${min}.5`, `${max}x`])
      expect(complaintAbout({ ...beside, [name]: String(beyond) })).toBe(
        `${name} is "${beyond}", but takes ${takes}.`,
      );
  });

  const url = 'a URL such as postgresql://user:password@host:5432/database';
  const wrongSettings: [name: string, wrong: string, takes: string][] = [
    ['LOG_LEVEL', 'INFO', 'one of fatal, error, warn, info, debug, trace, silent'],
  ];
  for (const wrong of ['a b', ' ', 'http://localhost', 'localhost:4000', '127.0.0.1:4000', '[::1]'])
    wrongSettings.push(['HOST', wrong, 'a host name or IP address, without a port or brackets']);
  for (const wrong of ['http', '-1', '65536', '80.5', '1e3', '0x50', ' 80', '99999999999999999999'])
    wrongSettings.push(['PORT', wrong, 'an integer from 0 to 65535']);
  for (const wrong of ['localhost', 'mysql://h/d', 'http://h', '5432', 'postgresql:h'])
    wrongSettings.push(['DATABASE_URL', wrong, url]);

  for (const wrong of [
    'null',
    'a.example',
    'https://a.example/app',
    'https://a.example:443',
    'https://a.example,',
    'localhost:5173',
    'file:///',
    'capacitor://localhost/app',
  ])
    wrongSettings.push([
      'CORS_ORIGINS',
      wrong,
      'origins such as https://app.example.com, separated by commas',
    ]);
  for (const [name, { takes }] of Object.entries(settings))
    if (takes === 'on or off') for (const wrong of ['true', 'ON']) wrongSettings.push([name, wrong, takes]);
  for (const wrong of ['on', 'true', 'READ', 'read,write'])
    wrongSettings.push(['MCP', wrong, 'off, read or write']);
  for (const wrong of ['on', 'Notify']) wrongSettings.push(['CHANGE_FEED', wrong, 'auto, notify or logical']);
  for (const wrong of ['ftp://h', 'xhttp://h', 'httpx://h', 'localhost:4318', '/traces'])
    wrongSettings.push(['OTEL_EXPORTER_OTLP_ENDPOINT', wrong, 'a URL such as http://localhost:4318']);
  for (const wrong of [
    'ftp://h/api/v1',
    'xhttp://h',
    'httpx://h',
    'h/api/v1',
    'https://h/api/v1?a=b',
    'https://h/api/v1#a',
  ])
    wrongSettings.push([
      'UPSTREAM_URL',
      wrong,
      'a URL without user, query or fragment, such as https://example.com/api/v1',
    ]);
  wrongSettings.push(
    ['PERSISTED_OPERATIONS', 'on', 'only, or nothing'],
    ['PERSISTED_OPERATIONS_FILE', 'operations.txt', 'a path that ends in .json, .graphql or .gql'],
    ['PERSISTED_OPERATIONS_FILE', 'a.json.bak', 'a path that ends in .json, .graphql or .gql'],
  );

  it.each(wrongSettings)('rejects %s=%j, which has to be %s', (name, wrong, takes) => {
    expect(complaintAbout({ [name]: wrong })).toBe(
      `${name} is ${JSON.stringify(wrong)}, but takes ${takes}.`,
    );
  });

  it.each(['*', 'https://*.example.com', 'https://a.example,http://localhost:*'])(
    'rejects CORS_ORIGINS=%s, since there are no wildcards',
    (wrong) => {
      expect(complaintAbout({ CORS_ORIGINS: wrong })).toBe(
        `CORS_ORIGINS is "${wrong}", but takes origins such as https://app.example.com, separated by commas. Name each one: there are no wildcards.`,
      );
    },
  );

  it.each(['two words', 'line\nbreak', 'ünusual'])(
    'rejects an invalid token without showing it: %j',
    (wrong) => {
      expect(complaintAbout({ UPSTREAM_URL: 'https://h/api/v1', UPSTREAM_TOKEN: wrong })).toBe(
        'UPSTREAM_TOKEN is not valid, but takes a token: visible ASCII characters.',
      );
    },
  );

  it('rejects a user in UPSTREAM_URL without showing the password', () => {
    expect(complaintAbout({ UPSTREAM_URL: 'https://me:hunter2@h/api/v1' })).toMatch(
      /^UPSTREAM_URL is "https:\/\/me:\*\*\*@h\/api\/v1", but takes a URL without user/,
    );
  });

  it('rejects several hosts in the URL of a standby, which is one server', () => {
    expect(complaintAbout({ ...primary, DATABASE_REPLICA_URLS: 'postgres://a,b/d' })).toBe(
      'DATABASE_REPLICA_URLS is not valid, but takes URLs such as postgresql://user:password@host:5432/database, separated by commas or spaces. Each URL names one host.',
    );
  });

  it('rejects an invalid URL of a standby with the reason, without showing the URL', () => {
    expect(complaintAbout({ ...primary, DATABASE_REPLICA_URLS: 'postgres://u:p#w@b/d' })).toMatch(
      /^DATABASE_REPLICA_URLS is not valid, but .* A password with characters such as @, #/,
    );
    expect(
      complaintAbout({
        ...primary,
        DATABASE_REPLICA_URLS: 'postgres://a/d postgres://u:p@b/d?sslmode=bogus',
      }),
    ).toBe(
      'DATABASE_REPLICA_URLS is not valid, but takes URLs such as postgresql://user:password@host:5432/database, separated by commas or spaces. sslmode is "bogus", but takes disable, no-verify, prefer, require, verify-ca, verify-full.',
    );
  });

  it.each([
    ['DATABASE_DIRECT_URL', 'postgres://h/d', 'DATABASE_URL'],
    ['DATABASE_REPLICA_URLS', 'postgres://h/d', 'DATABASE_URL'],
    ['UPSTREAM_TOKEN', 'secret', 'UPSTREAM_URL'],
    ['UPSTREAM_INTERVAL', '60', 'UPSTREAM_URL'],
    ['UPSTREAM_RATE', '60', 'UPSTREAM_URL'],
  ])('rejects %s=%s without %s', (name, value, other) => {
    for (const rest of [{}, { [other]: '' }])
      expect(complaintAbout({ ...rest, [name]: value })).toBe(
        `${name} is set without ${other}, which it goes with.`,
      );
    expect(readConfig({ [name]: '' })).toEqual(defaults);
  });

  it('rejects CHANGE_FEED=logical with the embedded database', () => {
    for (const rest of [{}, { DATABASE_URL: '' }])
      expect(complaintAbout({ ...rest, CHANGE_FEED: 'logical' })).toBe(
        'CHANGE_FEED is logical, but the embedded engine has no logical decoding: set DATABASE_URL, or leave CHANGE_FEED away.',
      );
  });

  it('rejects standbys with an upstream', () => {
    const settings = {
      ...primary,
      DATABASE_REPLICA_URLS: 'postgres://a/d',
      UPSTREAM_URL: 'https://h/api/v1',
    };
    expect(complaintAbout(settings)).toBe(
      'DATABASE_REPLICA_URLS cannot be used with UPSTREAM_URL: unset one of them.',
    );
  });

  it('rejects the same port for the gateway and its metrics, but accepts 0, a free port, for both', () => {
    const complaint = 'METRICS_PORT is 4000, as PORT is, but takes a port of its own.';
    expect(complaintAbout({ METRICS_PORT: '4000' })).toBe(complaint);
    expect(complaintAbout({ PORT: '04000', METRICS_PORT: '4000' })).toContain(complaint);
    expect(readConfig({ PORT: '0', METRICS_PORT: '0' })).toMatchObject({ PORT: 0, METRICS_PORT: 0 });
  });

  it('names every invalid setting on a line of its own', () => {
    const wrong = { PORT: 'a', LOG_LEVEL: 'b', HOST: 'fine', DATABASE_URL: 'c', DATABASE_DIRECT_URL: 'd' };
    expect(
      complaintAbout(wrong)
        .split('\n')
        .map((line) => line.split(' ', 1)[0]),
    ).toEqual(['PORT', 'DATABASE_URL', 'DATABASE_DIRECT_URL', 'LOG_LEVEL']);
  });

  it.each([
    ['mysql://me:hunter2@host/app', 'mysql://me:***@host/app'],
    ['mysql://me:hun:ter@2@host/app', 'mysql://me:***@host/app'],
    ['mysql://:hunter2@host/app', 'mysql://:***@host/app'],
    ['mysql://host/app?user=me&password=hunter2&x=1', 'mysql://host/app?user=me&password=***&x=1'],
    ['MySQL://me:hunter2@host/app', 'MySQL://me:***@host/app'],
    [
      'mysql://host/app?Password=hunter2&sslpassword=hunter3',
      'mysql://host/app?Password=***&sslpassword=***',
    ],
    ['mysql://me@host/app', 'mysql://me@host/app'],
    ['me:hunter2@host/app', '***@host/app'],
    ['postgresql:me:hunter2@host', '***@host'],
    ['postgresql//me:hunter2@host', '***@host'],
    ['postgresql://me:hun\nter2@a b', 'postgresql://me:***@a b'],
  ])('hides the password of an invalid DATABASE_URL: %j', (wrong, shown) => {
    expect(complaintAbout({ DATABASE_URL: wrong })).toContain(
      `DATABASE_URL is ${JSON.stringify(shown)}, but`,
    );
  });

  it.each(['postgresql://me:hun#ter@h/d', 'postgresql://me:hun/ter@h/d', 'postgresql://me:hun?ter@h/d'])(
    'explains how to escape a password with a character that ends the authority of the URL: %s',
    (wrong) => {
      expect(complaintAbout({ DATABASE_URL: wrong })).toBe(
        'DATABASE_URL is "postgresql://me:***@h/d", but takes a URL such as postgresql://user:password@host:5432/database. A password with characters such as @, #, / or ? is written as encodeURIComponent makes it: see docs/configuration.md#passwords-in-urls.',
      );
    },
  );
});

describe('the command line for a database', () => {
  it.each([
    [{}, ''],
    [{ DATA_DIR: '/var/lib/a' }, 'DATA_DIR=/var/lib/a '],
    [{ DATA_DIR: "it's" }, `DATA_DIR='it'\\''s' `],
    [{ DATA_DIR: 'unused', DATABASE_URL: 'postgresql://h:5432/d' }, 'DATABASE_URL=postgresql://h:5432/d '],
    [{ DATABASE_URL: 'postgres://u:p@h/d?a=b&c=d' }, `DATABASE_URL='postgres://u:***@h/d?a=b&c=d' `],
  ])('contains the settings that select the database, without a password: %o', (env, needed) => {
    expect(commandLine(readConfig(env), 'demo')).toBe(`${needed}npx dovetail demo`);
  });

  it.each([
    ['', "''"],
    ['a.b@c:d_9', 'a.b@c:d_9'],
    ['a b', "'a b'"],
    ['$(reboot)', "'$(reboot)'"],
    ['a\nb\tc', "'a b c'"],
  ])('quotes the word %j for a shell', (text, word) => {
    expect(shellWord(text)).toBe(word);
  });
});

describe('the number of processes', () => {
  const DATABASE_URL = 'postgresql://127.0.0.1/app';

  it.each([
    ['1 with the embedded database', { WORKERS: '3' }, 1],
    ['1 with the embedded database and WORKERS=auto', { WORKERS: 'auto' }, 1],
    ['WORKERS with a server', { WORKERS: '3', DATABASE_URL }, 3],
    [
      'the number of cores with a server and WORKERS=auto',
      { WORKERS: 'auto', DATABASE_URL },
      availableParallelism(),
    ],
  ])('is %s', (_, env, count) => {
    expect(workersOf(readConfig(env))).toBe(count);
  });
});

it.each([
  ['https://app.example.com', true],
  ['http://[::1]:5173', true],
  ['capacitor://localhost', true],
  ['moz-extension://2c1d0b6e-9f0e-4e0b-8a5a-1f1f6d1d2c3b', true],
  ['HTTPS://app.example.com', false],
  ['https://app.example.com/', false],
  ['https://app.example.com:443', false],
  ['https://user@app.example.com', false],
  ['capacitor://localhost/app', false],
  ['capacitor://user@localhost', false],
  ['blob:https://app.example.com', false],
  ['file://', false],
  ['localhost:5173', false],
  ['http://a;reboot', false],
  ['app://$(reboot)', false],
  ['http://a.example,b', false],
  ['null', false],
])('%s is an origin that a page may have: %s', (text, isSo) => {
  expect(isOrigin(text)).toBe(isSo);
});
