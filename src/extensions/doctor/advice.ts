/** What to do about a database that cannot be opened, where the error does not say it. */

import type pg from 'pg';
import { program, shellWord } from '../../config/config.ts';
import { encodedPassword, hasCutPassword } from '../../config/databaseUrl.ts';
import { errorText, systemCodeOf } from '../../errors.ts';
import { guideFile } from '../../root.ts';

/** What to do about a server that a start cannot use. @param error of the connection, if it has failed. */
export function connectionAdvice(
  { host, port, user, database }: Pick<pg.Client, 'host' | 'port' | 'user' | 'database'>,
  error: unknown,
  url: string,
): string {
  if (hasCutPassword(url)) return encodedPassword;
  const said = `${systemCodeOf(error) ?? ''} ${errorText(error)}`;
  // `invalid_catalog_name`
  if (said.startsWith('3D000 ')) {
    const command = ['createdb', '-h', host, '-p', String(port), '-U', user ?? '', database ?? ''];
    return `Make it: ${command.map(shellWord).join(' ')}`;
  }
  // The codes of OpenSSL.
  if (/^\S*(CERT_|_CERT\b|LEAF_SIGNATURE)/.test(said))
    return `The certificate of the server is not trusted. Add sslrootcert=/path/of/ca.pem to the URL, the certificate of who has signed it; name the host as the certificate does; renew it if it is out of date; or write sslmode=no-verify, with which whoever stands between can pose as the server: see ${guideFile('configuration.md#tls')}.`;
  // `pg` throws this if the server asks for a password that the URL does not have.
  if (/password must be a string/.test(said))
    return 'The server asks for a password: write it as postgresql://user:password@host/database.';
  return 'Correct that, or name another server in DATABASE_URL; unset it for the embedded database.';
}

/** What to do about a database that has tables of another program. */
export const foreignTablesAdvice =
  'Dovetail takes a database of its own: name another one in DATABASE_URL. Or have a schema of its own here: CREATE SCHEMA dovetail, and ?options=-c%20search_path%3Ddovetail at the end of DATABASE_URL.';

/** What to do about a role that cannot create tables. @param role quoted for SQL. */
export const schemaAdvice = (role: string) =>
  `Run \`${program()} migrate\` with a DATABASE_URL of the role that owns the database, or grant this one the rights as its owner: GRANT USAGE, CREATE ON SCHEMA … TO ${role}. If the search_path, in DATABASE_URL or of the role, leads to no schema, correct it, or make one with CREATE SCHEMA.`;

/** What to do about an embedded database that cannot be opened. */
export const folderAdvice = (error: unknown) =>
  errorText(error).includes('incompatible with server')
    ? `It is of another version of PostgreSQL than this release has. Move its data into a new DATA_DIR with the help of the release that made it: see ${guideFile('deployment.md#backups')}.`
    : 'Correct that, restore a copy, or set DATA_DIR to another folder. If the database is damaged, move it away.';
