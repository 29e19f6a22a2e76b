import { availableParallelism } from 'node:os';
import { describe, expect, it } from 'vitest';
import { commandLine, isOrigin, shellWord, workersOf } from '../../src/config/config.ts';
import { complaintAbout, readConfig, settings } from '../support/settings.ts';

describe('readConfig', () => {
  const defaults = readConfig({});

  it('returns the defaults when settings are empty, and ignores other variables', () => {
    const env = { HOST: '', PORT: '', DATABASE_URL: '', DATA_DIR: '', LOG_LEVEL: '', USER: 'me' };
    expect(readConfig(env)).toEqual(defaults);
  });

  const primary = { DATABASE_URL: 'postgres://h/d' };
  const upstream = { UPSTREAM_URL: 'https://h/api/v1' };
  const same: Record<string, string>[] = [
    ...['::', 'localhost', 'fe80::1%eth0', 'my_host.example'].map((HOST) => ({ HOST })),
    { DATABASE_URL: 'postgresql://u:p@h:5432/d?sslmode=disable' },
    { ...primary, DATABASE_DIRECT_URL: 'postgres://h/d' },
    { DATA_DIR: '/var/lib/a folder' },
    ...['a.json', 'a.graphql', '/b/a.gql'].map((file) => ({
      PERSISTED_OPERATIONS_FILE: file,
      PERSISTED_OPERATIONS: 'only',
    })),
  ];
  it.each(same)('accepts %o as it is', (env) => {
    expect(readConfig(env)).toEqual({ ...defaults, ...env });
  });

  it.each<[env: Record<string, string>, expected: Record<string, unknown>]>([
    [
      { CORS_ORIGINS: 'https://a.example/, http://localhost:5173,capacitor://localhost/' },
      { CORS_ORIGINS: ['https://a.example', 'http://localhost:5173', 'capacitor://localhost'] },
    ],
    [{ MAX_DEPTH: '007' }, { MAX_DEPTH: 7 }],
    [{ PUBLIC_URL: 'https://Home.example:443/a%20b/' }, { PUBLIC_URL: 'https://home.example/a%20b' }],
  ])('reads %o', (env, expected) => {
    expect(readConfig(env)).toEqual({ ...defaults, ...expected });
  });

  const ranges = Object.entries(settings).flatMap(([name, { takes }]) => {
    const [, min, max] = /^an integer from (\d+) to (\d+)/.exec(takes) ?? [];
    return max === undefined ? [] : [[name, Number(min), Number(max)] as const];
  });
  it.each(ranges)('accepts for %s only an integer from %i to %i', (name, min, max) => {
    const beside: Record<string, string> = name.startsWith('UPSTREAM_') ? upstream : {};
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

  const choices = Object.entries(settings).flatMap(([name, { takes }]) => {
    const [, first = '', last] = /^([a-z]+(?:, [a-z]+)*) or ([a-z]+)$/.exec(takes) ?? [];
    return last === undefined ? [] : [[name, [...first.split(', '), last]] as const];
  });
  it.each(choices)('accepts for %s only one of %j', (name, values) => {
    expect(choices.length).toBeGreaterThan(3);
    for (const value of values) expect(settings[name]?.schema.safeParse(value).error).toBeUndefined();
    const others = ['on', 'off', 'yes', values.join()].filter((value) => !values.includes(value));
    const uppercase = /^OTEL_/.test(name) ? [] : values.map((value) => value.toUpperCase());
    for (const wrong of [...others, ...uppercase])
      expect(complaintAbout({ [name]: wrong })).toBe(
        `${name} is "${wrong}", but takes ${settings[name]?.takes}.`,
      );
  });

  const wrongSettings = Object.entries({
    LOG_LEVEL: ['INFO'],
    HOST: ['a b', 'http://localhost', 'localhost:4000', '[::1]'],
    PORT: ['1e3', '0x50', '99999999999999999999'],
    CORS_ORIGINS: ['null', 'https://a.example,', 'example.org', 'https://a.example/app'],
    PUBLIC_URL: [
      'home.example/dovetail',
      '/dovetail',
      'ftp://h',
      'https://h/a b',
      'https://h/<b>',
      'https://h:x',
    ],
    PERSISTED_OPERATIONS: ['on'],
    PERSISTED_OPERATIONS_FILE: ['operations.txt', 'a.json.bak'],
  }).flatMap(([name, values]) => values.map((wrong) => [name, wrong, settings[name]?.takes] as const));
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

  it('rejects DATABASE_DIRECT_URL without DATABASE_URL', () => {
    for (const rest of [{}, { DATABASE_URL: '' }])
      expect(complaintAbout({ ...rest, DATABASE_DIRECT_URL: 'postgres://h/d' })).toBe(
        'DATABASE_DIRECT_URL is set without DATABASE_URL, which it goes with.',
      );
    expect(readConfig({ DATABASE_DIRECT_URL: '' })).toEqual(defaults);
  });

  it.each([
    ...['localhost', 'hunter2', 'mysql://h/d', 'postgresql:h', 'mysql://me:hunter2@host/app'],
    ...['me:hunter2@host', 'host=db user=me password=hunter2', 'postgresql://me:hunter2'],
    'Host=db;Username=me;Password=hunter2',
    ...['jdbc:postgresql://h/d?user=me&password=hunter2', 'DATABASE_URL=postgresql://me:hunter2@h/d'],
  ])('does not show an invalid DATABASE_URL, which may have a password anywhere: %j', (wrong) => {
    const complaint = `DATABASE_URL is not valid, but takes ${settings.DATABASE_URL?.takes}.`;
    const said = complaintAbout({ DATABASE_URL: wrong });
    expect(said.replace(' `pg` does not take it: Invalid URL.', '')).toBe(complaint);
  });

  it.each(['postgresql://me:hun#ter@h/d', 'postgresql://me:hun/ter@h/d', 'postgresql://me:hun?ter@h/d'])(
    'explains how to escape a password with a character that ends the authority of the URL: %s',
    (wrong) => {
      expect(complaintAbout({ DATABASE_URL: wrong })).toBe(
        'DATABASE_URL is not valid, but takes a URL such as postgresql://user:password@host:5432/database. A password with characters such as @, #, / or ? is written as encodeURIComponent makes it: see docs/configuration.md#passwords-in-urls.',
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
    [
      { DATABASE_URL: 'postgres://u:p@h/d?a=b&port=1&c=d' },
      `DATABASE_URL='postgres://u:***@h/d?***&port=1&***' `,
    ],
    [{ DATABASE_URL: 'postgresql://u:p@/d?host=/run' }, `DATABASE_URL='postgresql://u:***@/d?host=/run' `],
  ])('contains the settings that select the database, without a password: %o', (env, needed) => {
    expect(commandLine(readConfig(env), 'demo')).toBe(`${needed}npx dovetail-gateway demo`);
  });

  it('quotes a word for a shell', () => {
    const words = ['', 'a.b@c:d_9', 'a b', '$(reboot)', 'a\nb\tc'].map(shellWord);
    expect(words).toEqual(["''", 'a.b@c:d_9', "'a b'", "'$(reboot)'", "'a b c'"]);
  });
});

it('the number of processes is that of WORKERS with a server, and 1 with the embedded database', () => {
  const DATABASE_URL = 'postgresql://127.0.0.1/app';
  const counts = [
    { WORKERS: '3' },
    { WORKERS: 'auto' },
    { WORKERS: '3', DATABASE_URL },
    { WORKERS: 'auto', DATABASE_URL },
  ].map((env) => workersOf(readConfig(env)));
  expect(counts).toEqual([1, 1, 3, availableParallelism()]);
});

const extension = 'moz-extension://2c1d0b6e-9f0e-4e0b-8a5a-1f1f6d1d2c3b';
it.each(['https://app.example.com', 'http://[::1]:5173', 'capacitor://localhost', extension])(
  '%s is an origin that a page may have',
  (text) => {
    expect(isOrigin(text)).toBe(true);
  },
);

it.each([
  ...['HTTPS://app.example.com', 'https://app.example.com/', 'https://app.example.com:443'],
  ...['https://user@app.example.com', 'capacitor://localhost/app', 'capacitor://user@localhost'],
  ...['blob:https://app.example.com', 'file://', 'localhost:5173', 'http://a;reboot', 'app://$(reboot)'],
  ...['http://a.example,b', 'null'],
])('%s is no origin that a page may have', (text) => {
  expect(isOrigin(text)).toBe(false);
});
