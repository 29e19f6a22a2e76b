/**
 * The settings: every environment variable that the core reads, with its check and its documentation, and how they are read together
 * with those of extensions. Promises that a wrong value stops a start with a line about the accepted values, and that no message
 * shows a secret. To replace it: read a `Config` from any other source, such as a file.
 */

import { isIP } from 'node:net';
import { availableParallelism } from 'node:os';
import { z } from 'zod';
import { SetupError, withoutPassword } from '../errors.ts';
import { type Environment, isGiven, readValues, shown } from './environment.ts';
import {
  databaseUrl,
  integer,
  integerSetting,
  onOffSetting,
  type Settings,
  setting,
  type ValuesOf,
} from './setting.ts';

/** Whether a text may be a host name or an address, without a scheme, a port or brackets. */
const isHost = (text: string) => isIP(text) !== 0 || /^[^\s/:?#@[\]]+$/.test(text);

/**
 * Whether a text is an origin of a page, as browsers write it in `Origin`. Apps and extensions have schemes of their own, such as
 * `capacitor://localhost`, for which `URL` has no origin. A file has none. No host has a `*`.
 */
export function isOrigin(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { origin, protocol, host } = new URL(text);
  return /^[\w.:[\]-]+$/.test(host) && text === (origin === 'null' ? `${protocol}//${host}` : origin);
}

const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

export const settings = {
  HOST: setting(
    'address to listen on',
    'a host name or IP address, without a port or brackets',
    z.string().refine(isHost).default('127.0.0.1'),
  ),
  PORT: integerSetting('port to listen on; 0 picks a free one', [0, 65535], 4000),
  PUBLIC_URL: setting(
    'where clients reach the gateway, such as below a path of a proxy: for examples, messages and the OpenAPI document',
    'a URL such as https://home.example/dovetail, without a query',
    z
      .string()
      // All of these are safe in HTML and in commands of a shell.
      .regex(/^https?:\/\/[\w.:[\]-]+(\/[\w.~%-]+)*\/?$/i)
      .refine(URL.canParse)
      .transform((text) => new URL(text).href.replace(/\/$/, ''))
      .optional(),
  ),
  WRITE_URL_TO: setting(
    'file to which a start writes where the gateway listens, for `dovetail healthcheck`; none unless set',
    'a path',
    z.string().optional(),
  ),
  DATABASE_URL: databaseUrl('PostgreSQL (15 or later) to use instead of the embedded one'),
  DATABASE_DIRECT_URL: databaseUrl(
    'the same database past the pooler of DATABASE_URL, for what needs a session of its own: hearing of changes, migrations, locks',
  ),
  DATA_DIR: setting(
    'folder of the embedded database, and of the token of the demo account',
    'a path',
    z.string().min(1).default('.data'),
  ),
  DATABASE_CONNECTIONS: integerSetting(
    'connections in the pool of a process, and statements of requests that run at once; the change feed takes two more, or three with `logical`',
    [1, 1_000],
    10,
  ),
  STATEMENT_TIMEOUT: integerSetting(
    'seconds that one SQL statement may take; a request without a response five seconds later gets a 500',
    [1, 3_600],
    10,
  ),
  MAX_WAITING: integerSetting(
    'requests that may wait for the database in a process before others get a 503; for 100 ms, three times as many',
    [1, 100_000],
    100,
  ),
  WORKERS: setting(
    'processes that serve, sharing the port; `auto` is one per core; more than 1 needs DATABASE_URL',
    'an integer from 1 to 256, or auto',
    z.union([z.literal('auto'), integer(1, 256)]).default(1),
  ),
  SHUTDOWN_DELAY: integerSetting(
    'seconds from a signal to stop to the stop itself, in which `/readyz` fails and requests are still taken, for balancers that notice late',
    [0, 600],
    0,
  ),
  RESPONSE_CACHE_MB: integerSetting(
    'memory for cached responses, in MiB, each valid until its viewer’s data changes; 0 caches none',
    [0, 65_536],
    64,
  ),
  COMPRESSION: onOffSetting(
    'whether responses of both APIs are compressed, for clients that accept gzip',
    'on',
  ),
  GRAPHIQL: onOffSetting('the page that a browser is shown at /graphql', 'on'),
  CONSOLE: onOffSetting('the console at /console; not with PERSISTED_OPERATIONS=only', 'on'),
  INTROSPECTION: onOffSetting(
    'whether the schema and both references may be read, with or without a token',
    'on',
  ),
  CORS_ORIGINS: {
    ...setting(
      'origins whose pages may use both APIs; none unless named',
      'origins such as https://app.example.com, separated by commas',
      z
        .string()
        .transform((text) => text.split(',').map((origin) => origin.trim().replace(/\/$/, '')))
        .refine((origins) => origins.every(isOrigin))
        .optional(),
    ),
    isList: true,
    // A wildcard would be compared literally, with origins that no page can have.
    advice: (value: string) => (value.includes('*') ? 'Name each one: there are no wildcards.' : undefined),
  },
  PERSISTED_OPERATIONS_FILE: setting(
    'operations that requests may name by id: a manifest in JSON, or GraphQL',
    'a path that ends in .json, .graphql or .gql',
    z
      .string()
      .regex(/\.(json|graphql|gql)$/)
      .optional(),
  ),
  PERSISTED_OPERATIONS: setting(
    '`only` rejects all operations but those of PERSISTED_OPERATIONS_FILE',
    'only, or nothing',
    z.literal('only').optional(),
  ),
  MAX_DEPTH: integerSetting('levels of fields that an operation may have', [1, 10_000], 20),
  MAX_COMPLEXITY: integerSetting(
    'fields that a response may have, going by the sizes of the lists that are asked for',
    [1, 1_000_000_000],
    20_000,
  ),
  MAX_TOKENS: integerSetting('tokens that a document may have', [1, 100_000], 1_000),
  MAX_SUBSCRIPTIONS: integerSetting(
    'subscriptions and followed routes that a user may have open in one process',
    [1, 1_000_000],
    50,
  ),
  MAX_BODY_KB: integerSetting(
    'size of a GraphQL request’s body, or of a message through a WebSocket, in KiB',
    [1, 65_536],
    256,
  ),
  RATE_LIMIT: integerSetting(
    'requests a minute for each token, counted by all gateways of a DATABASE_URL together; 0 for no limit',
    [0, 1_000_000_000],
    6_000,
  ),
  RATE_LIMIT_ANONYMOUS: integerSetting(
    'requests a minute for each address, of those without a valid token; 0 for no limit',
    [0, 1_000_000_000],
    300,
  ),
  TRUST_PROXY: integerSetting(
    'how many proxies stand before the gateway, each of which adds to X-Forwarded-For',
    [0, 16],
    0,
  ),
  LOG_LEVEL: setting(
    'least important log lines to print',
    `one of ${logLevels.join(', ')}`,
    z.enum(logLevels).default('info'),
  ),
} satisfies Settings;

/** Settings that belong together: those of an extension. */
export interface SettingsGroup<Own extends Settings = Settings> {
  readonly settings: Own;
  /** Settings of the group that have no effect without another one. */
  readonly requires?: Readonly<Record<string, string>>;
  /** Settings of the group that cannot be used together with another one. */
  readonly excludes?: Readonly<Record<string, string>>;
  /** Finds values that do not go with others. @returns a line for each. */
  complain?(config: Config & ValuesOf<Own>): readonly string[];
}

/** The settings of the core. */
const core: SettingsGroup = { settings, requires: { DATABASE_DIRECT_URL: 'DATABASE_URL' } };

/** All settings: those of the core, and those of groups. */
export const settingsOf = (groups: readonly SettingsGroup[]): Settings =>
  Object.assign({}, ...[core, ...groups].map((group) => group.settings));

export type Config = ValuesOf<typeof settings>;

/** The address of a path for people and programs that have no page of the gateway before them: with PUBLIC_URL a URL. */
export const publicAddressOf = ({ PUBLIC_URL = '' }: Pick<Config, 'PUBLIC_URL'>, path: string): string =>
  PUBLIC_URL + path;

/** Whether the settings allow the console. Its operations are not in a PERSISTED_OPERATIONS_FILE, so "only" excludes it. */
export const hasConsole = ({
  CONSOLE,
  PERSISTED_OPERATIONS,
}: Pick<Config, 'CONSOLE' | 'PERSISTED_OPERATIONS'>): boolean =>
  CONSOLE === 'on' && PERSISTED_OPERATIONS !== 'only';

/** How many processes serve. With the embedded database it is one: only one process may have its folder open. */
export function workersOf({ DATABASE_URL, WORKERS }: Pick<Config, 'DATABASE_URL' | 'WORKERS'>): number {
  if (DATABASE_URL === undefined) return 1;
  return WORKERS === 'auto' ? availableParallelism() : WORKERS;
}

/**
 * Reads the settings from the environment, and from the files that it names. An empty variable counts as unset.
 * @param groups the settings of extensions. The result has their values as well.
 * @throws {SetupError} with one line per wrong variable: its name, what it got and what it takes.
 */
export function readConfig(env: Environment, groups: readonly SettingsGroup[] = []): Config {
  const all = settingsOf(groups);
  const { values: given, complaints } = readValues(env, all);
  const values: Record<string, unknown> = {};
  for (const [name, { schema, secret, takes, advice }] of Object.entries(all)) {
    const value = given[name] ?? '';
    const { success, data } = schema.safeParse(given[name]);
    if (!success) {
      const complaint = `${name} is ${secret ? 'not valid' : shown(value)}, but takes ${takes}.`;
      const next = advice?.(value);
      complaints.push(next === undefined ? complaint : `${complaint} ${next}`);
    }
    values[name] = data;
  }
  // Each value is an output of the schema of its own name, as `Config` says.
  const config = values as Config;
  for (const { requires = {}, excludes = {}, complain } of [core, ...groups]) {
    for (const [name, other] of Object.entries(requires))
      if (isGiven(env, name) && !isGiven(env, other))
        complaints.push(`${name} is set without ${other}, which it goes with.`);
    complaints.push(...(complain?.(config) ?? []));
    for (const [name, other] of Object.entries(excludes))
      if (values[name] !== undefined && values[other] !== undefined)
        complaints.push(`${name} cannot be used with ${other}: unset one of them.`);
  }
  if (complaints.length > 0) throw new SetupError(complaints.join('\n'));
  return config;
}

/**
 * The command with which the operator runs `dovetail`. The image, compose.yaml and others set theirs. By default it is one that works in a clone
 * and beside an installed package: npx gets a command that it does not find from the package of its name, and `dovetail` is somebody else's.
 */
export const program = (): string => process.env.DOVETAIL_COMMAND || 'npx dovetail-gateway';

/** The command line for a command on the database of these settings. */
export function commandLine(
  { DATABASE_URL, DATA_DIR }: Pick<Config, 'DATABASE_URL' | 'DATA_DIR'>,
  command: string,
): string {
  if (process.env.DOVETAIL_COMMAND) return `${program()} ${command}`;
  const defaultDataDir = settings.DATA_DIR.schema.parse(undefined);
  const variables =
    DATABASE_URL !== undefined
      ? `DATABASE_URL=${shellWord(withoutPassword(DATABASE_URL))} `
      : DATA_DIR === defaultDataDir
        ? ''
        : `DATA_DIR=${shellWord(DATA_DIR)} `;
  return `${variables}${program()} ${command}`;
}

/** Quotes a text so that a shell takes it as one word. */
export function shellWord(text: string): string {
  if (/^[\w.,:/@+-]+$/.test(text)) return text;
  return `'${text.replace(/\p{C}/gu, ' ').replaceAll("'", "'\\''")}'`;
}
