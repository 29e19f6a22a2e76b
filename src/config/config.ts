/**
 * The settings: every environment variable that Dovetail reads, with its check and its documentation. Promises that a wrong value
 * stops a start with a line about the accepted values, and that no message shows a secret. May be replaced by any other source of a
 * `Config`, such as a file.
 */

import { isIP } from 'node:net';
import { availableParallelism } from 'node:os';
import { z } from 'zod';
import { SetupError, withoutPassword } from '../errors.ts';
import { complaintAboutUrl, encodedPassword, hasCutPassword, isDatabaseUrl } from './databaseUrl.ts';

interface Setting<T> {
  /** What the variable is for; docs/configuration.md has the same text. */
  readonly description: string;
  /** The values that the variable takes, for the message about a wrong value. */
  readonly takes: string;
  readonly schema: z.ZodType<T>;
  /** Advice about a wrong value, if the value shows the mistake. */
  readonly advice?: (value: string) => string | undefined;
  /** Whether the value must never be printed. */
  readonly secret?: boolean;
}

const setting = <T>(description: string, takes: string, schema: z.ZodType<T>): Setting<T> => ({
  description,
  takes,
  schema,
});

const integer = (min: number, max: number) =>
  z.string().regex(/^\d+$/).transform(Number).pipe(z.int().min(min).max(max));

const integerSetting = (description: string, [min, max]: readonly [number, number], byDefault: number) =>
  setting(description, `an integer from ${min} to ${max}`, integer(min, max).default(byDefault));

const onOffSetting = (description: string, byDefault: 'on' | 'off') =>
  setting(description, 'on or off', z.enum(['on', 'off']).default(byDefault));

const databaseUrl = (description: string) => ({
  ...setting(
    description,
    'a URL such as postgresql://user:password@host:5432/database',
    z.string().refine(isDatabaseUrl).optional(),
  ),
  advice: adviceOnUrl,
});

/** Advice about the URL of a database, without the URL; undefined if there is none. */
function adviceOnUrl(url: string): string | undefined {
  return hasCutPassword(url) ? encodedPassword : complaintAboutUrl(url);
}

/** Whether a text may be a host name or an address, without a scheme, a port or brackets. */
const isHost = (text: string) => isIP(text) !== 0 || /^[^\s/:?#@[\]]+$/.test(text);

/**
 * Whether a text is an origin of a page, as browsers write it in `Origin`. Apps and extensions have schemes of their own, such as
 * `capacitor://localhost`, for which `URL` has no origin. A file has none. Hosts with special characters of a shell are rejected:
 * the log advises commands with the origin.
 */
export function isOrigin(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { origin, protocol, host } = new URL(text);
  return /^[\w.:[\]-]+$/.test(host) && text === (origin === 'null' ? `${protocol}//${host}` : origin);
}

const urlsIn = (text: string) => [...new Set(text.trim().split(/[\s,]+/))];

const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

export const settings = {
  HOST: setting(
    'address to listen on',
    'a host name or IP address, without a port or brackets',
    z.string().refine(isHost).default('127.0.0.1'),
  ),
  PORT: integerSetting('port to listen on; 0 picks a free one', [0, 65535], 4000),
  DATABASE_URL: databaseUrl('PostgreSQL (15 or later) to use instead of the embedded one'),
  DATABASE_DIRECT_URL: databaseUrl(
    'the same database past the pooler of DATABASE_URL, for what needs a session of its own: hearing of changes, migrations, locks',
  ),
  DATABASE_REPLICA_URLS: {
    ...setting(
      'streaming standbys of DATABASE_URL to read from, each a server of its own; see deployment',
      'URLs such as postgresql://user:password@host:5432/database, separated by commas or spaces',
      z
        .string()
        .transform(urlsIn)
        .refine((urls) => urls.every(isDatabaseUrl))
        .optional(),
    ),
    advice: (value: string) => urlsIn(value).map(adviceOnUrl).find(Boolean),
    secret: true,
  },
  DATA_DIR: setting(
    'folder of the embedded database, and of the token of the demo account',
    'a path',
    z.string().min(1).default('.data'),
  ),
  DEMO_ACCOUNT: setting(
    '`local`: an embedded database without users gets the demo account, and pages show its token under HOST and localhost alone, not with HOST 0.0.0.0 or ::. `public`: a database of DATABASE_URL without users gets it too (not with WORKERS), and pages show its token to whoever opens them',
    'local or public',
    z.enum(['local', 'public']).default('local'),
  ),
  CHANGE_FEED: setting(
    'how PostgreSQL announces changes: `notify`, for which commits wait for each other, or `logical` decoding, for which they do not; `auto` takes logical where server and role allow it',
    'auto, notify or logical',
    z.enum(['auto', 'notify', 'logical']).default('auto'),
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
  RESPONSE_CACHE_MB: integerSetting(
    'memory for cached responses, in MiB, each valid until its viewer’s data changes; 0 caches none',
    [0, 65_536],
    64,
  ),
  COMPRESSION: onOffSetting(
    'whether responses of both APIs are compressed, for clients that take them so',
    'on',
  ),
  GRAPHIQL: onOffSetting('the page that a browser is shown at /graphql', 'on'),
  CONSOLE: onOffSetting('the console at /console; not with PERSISTED_OPERATIONS=only', 'on'),
  INTROSPECTION: onOffSetting(
    'whether the schema and both references may be read, with or without a token',
    'on',
  ),
  FEDERATION: onOffSetting(
    'whether /graphql is a subgraph of a supergraph as well (Apollo Federation 2)',
    'off',
  ),
  MCP: setting(
    'the tools for language models at /mcp: those that read, or those that change something as well',
    'off, read or write',
    z.enum(['off', 'read', 'write']).default('off'),
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
  YOGA_PLUGINS: setting(
    'plugins for GraphQL Yoga or Envelop: a module whose default export is a list of them',
    'a path that ends in .js or .mjs',
    z
      .string()
      .regex(/\.m?js$/)
      .optional(),
  ),
  BATCHING: onOffSetting(
    'whether a POST may have a list of up to 10 operations, which counts as so many requests',
    'off',
  ),
  MAX_DEPTH: integerSetting('levels of fields that an operation may have', [1, 10_000], 20),
  MAX_COMPLEXITY: integerSetting(
    'fields that a response may have, going by the sizes of the lists that are asked for',
    [1, 1_000_000_000],
    20_000,
  ),
  MAX_TOKENS: integerSetting('tokens that a document may have', [1, 100_000], 1_000),
  MAX_SUBSCRIPTIONS: integerSetting(
    'subscriptions that a user may have open in one process',
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
  METRICS_PORT: setting(
    'port of `/metrics` for Prometheus, on HOST; 0 picks a free one; no metrics unless set',
    'an integer from 0 to 65535',
    integer(0, 65535).optional(),
  ),
  OTEL_EXPORTER_OTLP_ENDPOINT: setting(
    'where traces go, as OTLP over HTTP, such as http://localhost:4318; none unless set',
    'a URL such as http://localhost:4318',
    z.url({ protocol: /^https?$/ }).optional(),
  ),
  LOG_LEVEL: setting(
    'least important log lines to print',
    `one of ${logLevels.join(', ')}`,
    z.enum(logLevels).default('info'),
  ),
  UPSTREAM_URL: setting(
    'base URL of a service that speaks the REST interface: REST requests go there, and the database mirrors its accounts for GraphQL',
    'a URL without user, query or fragment, such as https://example.com/api/v1',
    z
      .url({ protocol: /^https?$/ })
      .regex(/^[^@?#]*$/)
      .transform((url) => url.replace(/\/+$/, ''))
      .optional(),
  ),
  UPSTREAM_TOKEN: {
    ...setting(
      'API token for UPSTREAM_URL: the one account to mirror; unset, clients bring tokens of their own',
      'a token: visible ASCII characters',
      z
        .string()
        .regex(/^[!-~]+$/)
        .optional(),
    ),
    secret: true,
  },
  UPSTREAM_INTERVAL: integerSetting(
    'seconds from one refresh of a mirrored account to the next, and for which a REST response is fresh unless the upstream says so',
    [1, 86_400],
    60,
  ),
  UPSTREAM_RATE: integerSetting(
    'requests a minute that the upstream allows for an account; 0 for no limit',
    [0, 1_000_000],
    60,
  ),
} satisfies Record<string, Setting<unknown>>;

/** Settings that have no effect without another one. Setting only the first is an error. */
const requiredSettings: Readonly<Partial<Record<Name, Name>>> = {
  DATABASE_DIRECT_URL: 'DATABASE_URL',
  DATABASE_REPLICA_URLS: 'DATABASE_URL',
  UPSTREAM_TOKEN: 'UPSTREAM_URL',
  UPSTREAM_INTERVAL: 'UPSTREAM_URL',
  UPSTREAM_RATE: 'UPSTREAM_URL',
};

/** A message about a wrong value of a setting, without secrets; undefined if the value is right. */
function complaintAbout(name: Name, value: string): string | undefined {
  const { schema, takes, secret, advice }: Setting<unknown> = settings[name];
  if (schema.safeParse(value).success) return undefined;
  const got = secret ? 'not valid' : JSON.stringify(withoutPassword(value));
  const next = advice?.(value);
  return `${name} is ${got}, but takes ${takes}.${next === undefined ? '' : ` ${next}`}`;
}

/** The name of a setting, which is that of its variable. */
type Name = keyof typeof settings;

export type Config = {
  readonly [Each in Name]: z.output<(typeof settings)[Each]['schema']>;
};

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
 * Reads the settings from the environment. An empty variable counts as unset.
 * @throws {SetupError} with one line per wrong variable: its name, what it got and what it takes.
 */
export function readConfig(env: Readonly<Record<string, string | undefined>>): Config {
  const complaints: string[] = [];
  // The keys of `settings` are its names: nothing adds others.
  const names = Object.keys(settings) as Name[];
  const entries = names.map((name) => {
    const given = env[name] === '' ? undefined : env[name];
    const complaint = given === undefined ? undefined : complaintAbout(name, given);
    if (complaint !== undefined) complaints.push(complaint);
    return [name, settings[name].schema.safeParse(given).data];
  });
  for (const [name, other] of Object.entries(requiredSettings))
    if (env[name] && !env[other]) complaints.push(`${name} is set without ${other}, which it goes with.`);
  // Each value is an output of the schema of its own name, as `Config` says.
  const config = Object.fromEntries(entries) as Config;
  if (config.METRICS_PORT && config.METRICS_PORT === config.PORT)
    complaints.push(`METRICS_PORT is ${config.METRICS_PORT}, as PORT is, but takes a port of its own.`);
  if (config.CHANGE_FEED === 'logical' && !env.DATABASE_URL)
    complaints.push(
      'CHANGE_FEED is logical, but the embedded engine has no logical decoding: set DATABASE_URL, or leave CHANGE_FEED away.',
    );
  // A mirror reads at once the rows that it has just written, which a standby may not have yet.
  if (config.DATABASE_REPLICA_URLS && config.UPSTREAM_URL)
    complaints.push('DATABASE_REPLICA_URLS cannot be used with UPSTREAM_URL: unset one of them.');
  if (complaints.length > 0) throw new SetupError(complaints.join('\n'));
  return config;
}

/** The command with which the operator runs `dovetail`. compose.yaml sets it for a container of `docker compose`. */
export const program = (): string => process.env.DOVETAIL_COMMAND || 'npx dovetail';

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
