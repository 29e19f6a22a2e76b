import { join } from 'node:path';
import { afterEach, expect, it, vi } from 'vitest';
import { connectionAdvice, folderAdvice } from '../../../src/extensions/doctor/advice.ts';
import { newFolder } from '../../support/newFolder.ts';

afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

const client = { host: 'h', port: 5433, user: 'me', database: 'a b' };
const failed = (message: string, code?: string) => Object.assign(new Error(message), { code });
const adviceOn = (error: unknown, url = 'postgresql://me:hunter2@h:5433/a%20b') =>
  connectionAdvice(client, error, url, 'DATABASE_URL');

const start = 'Start the server, or correct DATABASE_URL; unset it for the embedded database.';
const encode = 'A password with characters such as ';

it.each<[string, string | undefined, string, string?]>([
  ['connect EPERM 127.0.0.1:5433', 'EPERM', start],
  ['Query read timeout', undefined, 'Look whether its pooler is paused'],
  ['wrong password', '28P01', 'Correct its password, or the name of the role'],
  ['role "me" does not exist', '28000', 'Correct its name in DATABASE_URL'],
  ['The server does not support SSL connections', undefined, 'Leave sslmode out of DATABASE_URL'],
  ['self-signed', 'DEPTH_ZERO_SELF_SIGNED_CERT', 'is not trusted. Add sslrootcert='],
  ['no match', 'ERR_TLS_CERT_ALTNAME_INVALID', 'is not trusted. Add sslrootcert='],
  ['expired', 'CERT_HAS_EXPIRED', 'is not trusted. Add sslrootcert='],
  ['SASL: client password must be a string', undefined, 'postgresql://user:password@host/database'],
  ['no database', '3D000', "Make it: createdb -h h -p 5433 -U me 'a b'"],
  ['no pg_hba.conf entry', '28000', 'The server does not let it in'],
  ['getaddrinfo ENOTFOUND un', 'ENOTFOUND', encode, 'postgresql://me:h@un/ter@h/d'],
  ['getaddrinfo ENOTFOUND h', 'ENOTFOUND', start, 'postgresql://h:5432?user=me@tenant'],
])('says what to do about a server with the error: %s (%s)', (said, code, advice, url) => {
  expect(adviceOn(failed(said, code), url)).toContain(advice);
});

it.each([
  ['The server does not support SSL connections', undefined],
  ['self-signed', 'DEPTH_ZERO_SELF_SIGNED_CERT'],
])('tells of a PGSSLMODE, which asks for TLS in place of the URL: %s', (said, code) => {
  const without = adviceOn(failed(said, code));
  vi.stubEnv('PGSSLMODE', 'require');
  expect(adviceOn(failed(said, code))).toBe(
    `${without} PGSSLMODE is set, and asks for TLS where a URL has no sslmode.`,
  );
});

it('says how a folder is given to the user of the gateway, or made for them if it is missing', () => {
  vi.spyOn(process, 'geteuid').mockReturnValue(65532);
  const folder = newFolder();
  const denied = failed('EACCES: permission denied', 'EACCES');
  expect(folderAdvice(folder, denied)).toMatch(new RegExp(`as root: chown -R 65532 ${folder}$`));
  expect(folderAdvice(join(folder, 'none'), denied)).toBe(
    `Make it as root: install -d -m 700 -o 65532 ${folder}/none`,
  );
});

it.each([
  ['FATAL:  database files are incompatible with server', 'see docs/deployment.md#backups'],
  ['PANIC:  could not locate a valid checkpoint record', 'If the database is damaged, move it away'],
])('says what to do about an embedded database that ends with %s', (said, advice) => {
  expect(folderAdvice(newFolder(), failed(said))).toContain(advice);
});
