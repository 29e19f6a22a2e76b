/** What to do about a database that cannot be opened. */

import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type pg from 'pg';
import { program, shellWord } from '../../config/config.ts';
import { encodedPassword, hasCutPassword } from '../../config/databaseUrl.ts';
import type { ServerSetting } from '../../database/connection.ts';
import { isUnresponsive } from '../../database/session.ts';
import { errorText, systemCodeOf } from '../../errors.ts';
import { guideFile } from '../../root.ts';

type Address = Pick<pg.Client, 'host' | 'port' | 'user' | 'database'>;

/**
 * The command that creates a database as the role of a client.
 * @param options of `createdb`, besides those for the server and the role.
 */
function createDatabase(
  { host, port, user }: Address,
  name: string,
  options: readonly string[] = [],
): string {
  const command = ['createdb', '-h', host, '-p', String(port), '-U', user ?? '', ...options, name];
  return `Make it: ${command.map(shellWord).join(' ')}`;
}

/** What to do about a client that could not connect, or lost its connection. @param setting has the URL. */
export function connectionAdvice(
  client: Address,
  error: unknown,
  url: string,
  setting: ServerSetting,
): string {
  if (isUnresponsive(error))
    return 'Look whether its pooler is paused, its disk is full or hangs, or somebody holds a lock.';
  const said = `${systemCodeOf(error) ?? ''} ${errorText(error)}`;
  const found = reasons.find(([pattern]) => pattern.test(said));
  if (found) return found[1](setting, client);
  if (hasCutPassword(url)) return encodedPassword;
  const without = setting === 'DATABASE_URL' ? '; unset it for the embedded database' : '';
  return `Start the server, or correct ${setting}${without}.`;
}

/**
 * The known reasons: each with a pattern for the code and text of the error, and the advice. Codes are those of PostgreSQL (its
 * documentation, appendix A) and of OpenSSL.
 */
const reasons: readonly [pattern: RegExp, advice: (setting: ServerSetting, client: Address) => string][] = [
  [/^3D000 /, (_, client) => createDatabase(client, client.database ?? '')],
  // A server that asks for passwords responds the same for a role that does not exist.
  [/^28P01 /, () => 'Correct its password, or the name of the role, or make the role by createuser -P.'],
  [
    /^\S* role ".*" does not exist$/,
    (setting) => `Correct its name in ${setting}, or make it by createuser -P.`,
  ],
  [
    /does not support SSL/,
    (setting) => `Leave sslmode out of ${setting}, or switch TLS on at the server.${byVariable()}`,
  ],
  [
    /^\S*(CERT_|_CERT\b|LEAF_SIGNATURE)/,
    (setting) =>
      `The certificate of the server is not trusted. Add sslrootcert=/path/of/ca.pem to ${setting}, the certificate of who has signed it; name the host as the certificate does; renew it if it is out of date; or write sslmode=no-verify in ${setting}, with which whoever stands between can pose as the server: see ${guideFile('configuration.md#tls')}.${byVariable()}`,
  ],
  // `pg` throws this if the server asks for a password that the URL does not have.
  [
    /password must be a string/,
    () => 'The server asks for a password: write it as postgresql://user:password@host/database.',
  ],
  [
    /^(?=\S*\d)[\dA-Z]{5} /,
    (setting) => `The server does not let it in: see to that, or correct ${setting}.`,
  ],
];

const byVariable = () =>
  process.env.PGSSLMODE ? ' PGSSLMODE is set, and asks for TLS where a URL has no sslmode.' : '';

/** What to do about a database of another encoding. */
export function encodingAdvice(client: Address): string {
  const name = client.database === 'dovetail' ? 'dovetail_utf8' : 'dovetail';
  return `${createDatabase(client, name, ['-E', 'UTF8', '-T', 'template0'])}. Name it in DATABASE_URL.`;
}

/** What to do about a database that has tables of another program. */
export function foreignTablesAdvice(client: Address): string {
  const name = client.database === 'dovetail' ? 'dovetail_gateway' : 'dovetail';
  return `Dovetail takes a database of its own. ${createDatabase(client, name)}. Name it in DATABASE_URL; or have a schema of its own here: CREATE SCHEMA dovetail, and ?options=-c%20search_path%3Ddovetail at the end of DATABASE_URL.`;
}

/** What to do about a role that cannot create tables. @param role quoted for SQL. */
export const schemaAdvice = (role: string) =>
  `Run \`${program()} migrate\` with a DATABASE_URL of the role that owns the database, or grant this one the rights as its owner: GRANT USAGE, CREATE ON SCHEMA … TO ${role}. If the search_path, in DATABASE_URL or of the role, leads to no schema, correct it, or make one with CREATE SCHEMA.`;

/** What to do about an embedded database that cannot be opened. */
export function folderAdvice(folder: string, error: unknown): string {
  const text = errorText(error);
  if (/incompatible with server/.test(text))
    return `It is of another version of PostgreSQL than this release has. Move its data into a new DATA_DIR with the help of the release that made it: see ${guideFile('deployment.md#backups')}.`;
  // The user of this process; undefined on Windows.
  const user = process.geteuid?.();
  if (user === undefined || !/belongs to user|EACCES|EPERM|permission denied/i.test(text))
    return 'Correct that, restore a copy, or set DATA_DIR to another folder. If the database is damaged, move it away.';
  return existsSync(folder)
    ? `Run this as the owner of the folder, such as by sudo -u, or give the folder away as root: chown -R ${user} ${resolve(folder)}`
    : `Make it as root: install -d -m 700 -o ${user} ${resolve(folder)}`;
}
