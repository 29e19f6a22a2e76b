/** The text that is printed when a gateway serves: its addresses, and example requests. */

import pg from 'pg';
import { type Config, commandLine, hasConsole } from '../config/config.ts';
import { hostPortText, serverOf } from '../database/connection.ts';
import type { BannerEntry } from '../extensionPoints.ts';
import { isEverywhere } from '../http/hostName.ts';
import { hasGraphiql, hasReferences } from '../pages/links.ts';
import { findAccountsElsewhere, starters } from './hooks.ts';

export interface Banner {
  readonly url: string;
  /** The entries of extensions. */
  readonly lines?: readonly BannerEntry[] | undefined;
  /** The token of an account for all. */
  readonly shownToken?: string | undefined;
  /** Whether anybody has an account in the database. */
  readonly hasUsers: boolean;
  /** How many processes serve. */
  readonly workers: number;
}

export function bannerOf(config: Config, banner: Banner): string {
  const { shownToken } = banner;
  const url = config.PUBLIC_URL ?? banner.url;
  const token = shownToken ?? 'YOUR_API_TOKEN';
  const query = `  curl ${url}/graphql -H 'Authorization: Bearer ${token}' -H 'Content-Type: application/json' -d '{"query":"{ viewer { username } }"}'\n`;
  const entries = entriesOf(config, banner);
  const width = Math.max(...entries.map(([name]) => name.length));
  const lines = entries.map(([name, what]) => `  ${name.padEnd(width)}  ${what}\n`);
  return `
Dovetail is running.

${lines.join('')}${accountsOf(config, { ...banner, url })}
${config.PERSISTED_OPERATIONS === 'only' ? '' : query}  curl ${url}/api/v1/dtt/templates/active -H 'Authorization: Bearer ${token}'

`;
}

/** The entries of the list: names and addresses. */
function entriesOf(config: Config, { url, lines = [], workers }: Banner): BannerEntry[] {
  const { HOST, WORKERS, DATABASE_URL, PUBLIC_URL } = config;
  const everywhere = isEverywhere(HOST) ? `  (listens on every address, HOST ${HOST})` : '';
  const start = PUBLIC_URL ?? url;
  const entries: (readonly [string, string | undefined])[] = [
    ['Start here', PUBLIC_URL ?? `${url}${everywhere}`],
    ['Listens on', PUBLIC_URL && `${url}${everywhere}`],
    ['Console', hasConsole(config) ? `${start}/console` : undefined],
    ['GraphiQL', hasGraphiql(config) ? `${start}/graphql` : undefined],
    ['REST reference', hasReferences(config) ? `${start}/docs` : undefined],
    ['Database', databaseOf(config)],
    ...lines,
    ['Workers', workers > 1 ? String(workers) : undefined],
  ];
  if (WORKERS !== workers && DATABASE_URL === undefined)
    entries.push(['Workers', '1: the embedded database belongs to one process. Set DATABASE_URL for more.']);
  return entries.flatMap(([name, what]) => (what === undefined ? [] : [[name, what]]));
}

/** The database, in a line: it makes a wrong DATABASE_URL visible. The line has no user and no password. */
function databaseOf({ DATABASE_URL, DATA_DIR }: Config): string {
  if (DATABASE_URL === undefined) return printable(`${DATA_DIR} (embedded)`);
  // The environment has what the URL leaves out, as for connections.
  const client = new pg.Client(serverOf(DATABASE_URL));
  return printable(`${client.database ?? client.user ?? ''} on ${hostPortText(client)}`);
}

const printable = (text: string) => text.replace(/\p{C}/gu, ' ');

/** How to get an account or a token, if there is no token to show. */
function accountsOf(config: Config, { url, shownToken, hasUsers }: Banner): string {
  if (shownToken !== undefined) return '';
  const elsewhere = findAccountsElsewhere(config);
  const createToken = (user: string) =>
    commandLine(config, `token create --user ${user} --name laptop --scope manage`);
  if (elsewhere?.clients) return `\n  ${elsewhere.clients(url)}\n`;
  const lines =
    hasUsers || elsewhere
      ? [
          hasUsers || !elsewhere
            ? 'A token for a user, who can create more with it in the console:'
            : elsewhere.arriving,
          '',
          `  ${createToken('NAME')}`,
        ]
      : [
          'No accounts yet. Create one in either way:',
          '',
          ...starters.flatMap(({ offer, command }) => [`  ${offer}`, `    ${commandLine(config, command)}`]),
          `  an account of your own, and a token that can create more in the console; ${url}/guides/operations#users has the SQL that fills it`,
          `    ${commandLine(config, 'user create me --tier ultra')}`,
          `    ${createToken('me')}`,
        ];
  if (lines.some((line) => line.includes('***'))) lines.push('', 'Write the password in the place of ***.');
  return `\n${lines.map((line) => `${line && `  ${line}`}\n`).join('')}`;
}
