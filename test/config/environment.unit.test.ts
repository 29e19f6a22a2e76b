/** Values as shells, files and images deliver them, and variables that only look like settings. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { findIgnored, override } from '../../src/config/environment.ts';
import { newFolder } from '../support/newFolder.ts';
import { complaintAbout, readConfig, settings } from '../support/settings.ts';

const folder = newFolder();

/** A file with the text. */
function fileOf(text: string, name = 'file'): string {
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
}

const url = 'postgresql://me:hunter2@h/d';

const stray = 'with a space or a quotation mark at its start or end, or an invisible character: remove that.';

it.each([
  ['DATA_DIR', '"/data"', String.raw`is "\"/data\""`],
  ['DATA_DIR', "/data'", `is "/data'"`],
  ['DATA_DIR', '“/data”', 'is "“/data”"'],
  ['DATA_DIR', '/data\r', String.raw`is "/data\r"`],
  ['DATA_DIR', '/da\u0085ta', String.raw`is "/da\u0085ta"`],
  ['DATA_DIR', '\uFEFF/data', String.raw`is "\ufeff/data"`],
  ['DATA_DIR', '/data ', 'is "/data "'],
  ['PORT', ' 80', 'is " 80"'],
  ['LOG_LEVEL', 'info\u200B', String.raw`is "info\u200b"`],
  ['CORS_ORIGINS', "'https://a.example'", `is "'https://a.example'"`],
  ['DATABASE_URL', `'${url}'`, 'is set'],
  ['DATABASE_URL', 'postgresql://me:hun\nter2@h/d', 'is set'],
])('%s=%j stops a start with a line that shows it, unless it may be secret', (name, value, says) => {
  expect(complaintAbout({ [name]: value })).toBe(`${name} ${says}, ${stray}`);
});

it('a list may have line breaks and spaces between its items', () => {
  const CORS_ORIGINS = '\nhttps://a.example,\r\n  https://b.example\n';
  expect(readConfig({ CORS_ORIGINS }).CORS_ORIGINS).toEqual(['https://a.example', 'https://b.example']);
});

it.each(Object.keys(settings).filter((name) => name !== 'PERSISTED_OPERATIONS'))(
  'the value of %s may be in a file, whose last line may end with line breaks',
  (name) => {
    const file = fileOf('"\r\n\n');
    expect(complaintAbout({ [`${name}_FILE`]: file })).toContain(stray);
  },
);

it('reads the value of a file as that of the variable', () => {
  const DATABASE_DIRECT_URL_FILE = fileOf(`${url}\r\n`);
  const env = { DATABASE_URL: url, DATABASE_DIRECT_URL_FILE, PORT_FILE: fileOf('0', 'port') };
  expect(readConfig(env)).toEqual(readConfig({ DATABASE_URL: url, DATABASE_DIRECT_URL: url, PORT: '0' }));
  // A flag takes precedence over both.
  expect(readConfig(override(env, { PORT: '1' })).PORT).toBe(1);
  // PERSISTED_OPERATIONS_FILE is a setting, and no file with the value of another one.
  expect(readConfig({ PERSISTED_OPERATIONS_FILE: 'a.json' })).toEqual({
    ...readConfig({}),
    PERSISTED_OPERATIONS_FILE: 'a.json',
  });
});

it.each<[Record<string, string>, string]>([
  [{ PORT: '1', PORT_FILE: '/a' }, 'PORT and PORT_FILE are both set: unset one of them.'],
  [
    { PORT_FILE: '/nowhere' },
    'PORT_FILE is "/nowhere", but takes a file to read: ENOENT: no such file or directory.',
  ],
  [
    { PORT_FILE: '/' },
    'PORT_FILE is "/", but takes a file to read: EISDIR: illegal operation on a directory.',
  ],
  [{ PORT_FILE: '/a\r' }, `${String.raw`PORT_FILE is "/a\r"`}, ${stray}`],
  [
    { DATABASE_URL_FILE: url },
    'DATABASE_URL_FILE is "postgresql://me:***@h/d", but takes a file to read: ENOENT: no such file or directory.',
  ],
  [{ PORT_FILE: fileOf('\n', 'empty') }, `PORT_FILE is "${join(folder, 'empty')}", but that file is empty.`],
])('rejects %o', (env, complaint) => {
  expect(complaintAbout(env)).toBe(complaint);
});

const names = Object.keys(settings);
const ignored = (env: Record<string, string>) => findIgnored(env, names);

it.each([
  ...['POSTGRES_URL', 'POSTGRESQL_URL', 'PG_URL', 'DB_URL', 'POSTGRES_DSN', 'JDBC_DATABASE_URL'],
  ...['DATABASE_PRIVATE_URL', 'DB_HOST', 'POSTGRES_HOST', 'PGHOST', 'PGSERVICE', 'POSTGRES_URL_FILE'],
  ...['DB_CONNECTION_STRING'],
])('names %s, which looks like a database, while the embedded one is used', (name) => {
  const line = `${name} looks like a database, and has no effect: without DATABASE_URL, Dovetail uses its embedded one.`;
  expect(ignored({ [name]: 'x' })).toEqual([line]);
  expect(ignored({ [name]: 'x', DATABASE_URL: 'x' })).toEqual([]);
  expect(ignored({ [name]: 'x', DATABASE_URL_FILE: 'x' })).toEqual([]);
});

it('names any variable with the URL of a PostgreSQL, without the URL', () => {
  for (const value of [url, 'postgres://h/d', 'jdbc:postgresql://h/d?password=x'])
    expect(ignored({ NEON: value })).toEqual([
      expect.stringMatching(/^NEON looks like a database, and has no effect: /),
    ]);
});

it('names no variable of another purpose', () => {
  expect(
    ignored({ HOST: 'x', PGUSER: 'x', PGPASSWORD: 'x', MYPGHOST: 'x', GITHUB_SERVER_URL: 'x', DB_NAME: 'x' }),
  ).toEqual([]);
});

it('takes a misspelt name of a file for what it is meant to be', () => {
  expect(ignored({ DATABSE_URL_FILE: 'x' })).toEqual([
    'Unknown setting DATABSE_URL_FILE (ignored). Did you mean DATABASE_URL_FILE?',
  ]);
});

it.each([
  ['database_url', 'DATABASE_URL'],
  ['LOGLEVEL', 'LOG_LEVEL'],
  ['MAX_WATIING', 'MAX_WAITING'],
  ['MAX_WEETING', 'MAX_WAITING'],
  ['port', 'PORT'],
  ['PROT', 'PORT'],
])('names %s, which is similar to a setting', (given, meant) => {
  expect(ignored({ [given]: 'x' })).toEqual([`Unknown setting ${given} (ignored). Did you mean ${meant}?`]);
});

it.each([
  ['is another word', { HOSTNAME: 'x', HOSTS: 'x', POST: 'x', TOKEN: 'x', DATEXIR: 'x' }],
  ['is empty', { LOGLEVEL: '' }],
  ['is set beside the setting', { CORS_ORIGIN: 'x', CORS_ORIGINS: 'x' }],
  ['belongs to another program', { OTEL_EXPORTER_OTLP_HEADERS: 'x', DATABASE_PASSWORD: 'x', MAX_WIDTH: 'x' }],
])('names no variable that %s', (_, env) => {
  expect(ignored(env)).toEqual([]);
});
