import { expect, it } from 'vitest';
import { connectionAdvice, folderAdvice } from '../../../src/extensions/doctor/advice.ts';

const client = { host: 'h', port: 5433, user: 'me', database: 'a b' };
const failed = (message: string, code?: string) => Object.assign(new Error(message), { code });
const usual = 'Correct that, or name another server in DATABASE_URL; unset it for the embedded database.';

it.each<[string, string | undefined, string, string?]>([
  ['connect EPERM 127.0.0.1:5433', 'EPERM', usual],
  ['self-signed', 'DEPTH_ZERO_SELF_SIGNED_CERT', 'is not trusted. Add sslrootcert='],
  ['no match', 'ERR_TLS_CERT_ALTNAME_INVALID', 'is not trusted. Add sslrootcert='],
  ['no issuer', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'is not trusted. Add sslrootcert='],
  ['expired', 'CERT_HAS_EXPIRED', 'is not trusted. Add sslrootcert='],
  ['SASL: client password must be a string', undefined, 'postgresql://user:password@host/database'],
  ['no database', '3D000', "Make it: createdb -h h -p 5433 -U me 'a b'"],
  [
    'getaddrinfo ENOTFOUND un',
    'ENOTFOUND',
    'A password with characters such as ',
    'postgresql://me:h@un/ter@h/d',
  ],
])('says what to do about a server with the error: %s (%s)', (said, code, advice, url = 'postgresql://h') => {
  expect(connectionAdvice(client, failed(said, code), url)).toContain(advice);
});

it.each([
  ['FATAL:  database files are incompatible with server', 'see docs/deployment.md#backups'],
  ['PANIC:  could not locate a valid checkpoint record', 'If the database is damaged, move it away'],
])('says what to do about an embedded database that ends with %s', (said, advice) => {
  expect(folderAdvice(failed(said))).toContain(advice);
});
