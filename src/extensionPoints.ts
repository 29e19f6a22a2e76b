/**
 * The points at which extensions take part in the gateway. An extension is a folder of `src/extensions`, which the core knows only by
 * the list there. Each point is named by its moment; docs/architecture.md#extensions says who uses it. With no extension on, each
 * moment costs a look at an undefined property.
 */

import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Command } from 'commander';
import type { GraphQLSchema } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import type { Logger } from 'pino';
import type { AccountOwner } from './auth/users.ts';
import type { Recheck, Viewer } from './auth/viewer.ts';
import type { Config, SettingsGroup } from './config/config.ts';
import type { Settings, ValuesOf } from './config/setting.ts';
import type { AnnouncingServer, Database } from './database/database.ts';
import type { ChangeFeed } from './database/feed/changeFeed.ts';
import type { ReadLog } from './database/feed/notify.ts';
import type { Sql } from './database/reader/sql.ts';
import type { RunInTurn, Turns } from './database/turns.ts';
import type { TokenProblem } from './errors.ts';
import type { NamedOperations } from './graphql/persisted.ts';
import type { Cors } from './http/cors.ts';
import type { HttpError } from './http/errorResponse.ts';
import type { Exchange, ExchangeListener, Outcome, OwnEndpoint } from './http/exchange.ts';
import type { HttpResponse, StreamedResponse } from './http/response.ts';
import type { ResponseCache } from './http/responseCache.ts';
import type { Task } from './http/task.ts';
import type { AccountsElsewhere, Starter } from './pages/accounts.ts';
import type { FollowedRead } from './rest/handler.ts';
import type { OperationHooks } from './schema/context.ts';
import type { LiveReads } from './schema/liveReads.ts';

/**
 * What an extension brings. Its module is always loaded, and so has to be light: heavy packages are loaded by the functions, when the
 * settings ask for them.
 */
export interface Extension<Own extends Settings = Settings> extends SettingsGroup<Own> {
  /** The schema of `/graphql` in place of the core's; undefined if the settings do not ask for it. */
  schema?(config: Config & ValuesOf<Own>): Promise<GraphQLSchema | undefined>;
  /** Plugins for Yoga, which come after the core's. @throws {SetupError} if they cannot be used. */
  plugins?(config: Config & ValuesOf<Own>): Promise<readonly Plugin[]>;
  /** How a server announces changes is chosen, before the feed opens. @throws {SetupError} for a choice that is not available. */
  chooseFeed?(config: Config & ValuesOf<Own>, server: AnnouncingServer, logger: Logger): Promise<void>;
  /** A server announces changes in its log. */
  readonly readLog?: ReadLog;
  /** To whom the users of a database may belong. */
  readonly owner?: AccountOwner;
  /** Commands of the command line, for these extensions. What they need is loaded when they run. */
  commands?(extensions: readonly Extension[]): readonly Command[];
  /** How clients and operators get accounts, if these live elsewhere; undefined if the settings do not say so. */
  accounts?(config: Config & ValuesOf<Own>): AccountsElsewhere | undefined;
  /** How a database without accounts gets one. */
  readonly starter?: Starter;
  /** Checks for operators. */
  checks?(config: Config & ValuesOf<Own>): readonly Check[];
  /** Takes part in a process that serves. It is called in the order of the list; undefined if the settings do not ask for it. */
  open?(
    config: Config & ValuesOf<Own>,
    gateway: GatewayParts,
  ): Hooks | undefined | Promise<Hooks | undefined>;
  /** Takes part in a process whose workers serve. @param url where they listen. */
  openPrimary?(
    config: Config & ValuesOf<Own>,
    url: string,
  ): Promise<Pick<Hooks, 'lines' | 'close'> | undefined>;
}

/** The schema of the first extension that brings one; undefined for the core's. */
export async function schemaOf(
  extensions: readonly Extension[],
  config: Config,
): Promise<GraphQLSchema | undefined> {
  for (const extension of extensions) {
    const schema = await extension.schema?.(config);
    if (schema) return schema;
  }
  return undefined;
}

/** To whom the users of a database may belong. */
export const ownersOf = (extensions: readonly Extension[]): readonly AccountOwner[] =>
  extensions.flatMap(({ owner = [] }) => owner);

export interface GatewayParts {
  readonly database: Database;
  readonly feed: ChangeFeed;
  readonly responseCache: ResponseCache;
  readonly turns: Turns;
  /** Must be called with a viewer who knows of a change that may not have been announced here. */
  noteChange(viewerId: number): void;
  readonly logger: Logger;
  /** The schema of `/graphql`, if it is not the core's. */
  readonly schema: GraphQLSchema | undefined;
  /** To whom the users of the database may belong. */
  readonly owners: readonly AccountOwner[];
  /** Set where accounts live elsewhere. */
  readonly accounts: AccountsElsewhere | undefined;
  /** The metrics of the extensions that were opened before. */
  readonly metrics: readonly Metric[];
}

/** A token that pages may show. */
export interface ShownToken {
  readonly token: string;
  /** The token; undefined for a request whose page must not have it. */
  for(request: IncomingMessage): string | undefined;
}

/** The SQL interface of one operation. */
export interface OperationSql extends Sql {
  /** Runs what Prisma's client reads or writes, always on the primary. */
  readonly onPrimary: RunInTurn;
}

/**
 * What an extension does in a gateway that serves. Each is called at the moment that it is named by. Where several may take part,
 * `server/hooks.ts` joins them: before a read, in the text of a start, in the metrics, and when the gateway closes.
 */
export interface Hooks extends OperationHooks {
  /** Paths of its own, beside both APIs. */
  readonly endpoints?: readonly EndpointHook[];
  /** Connections that leave HTTP. */
  readonly upgrades?: UpgradeHook;
  /** Operations that requests may name by id. */
  readonly persisted?: NamedOperations;
  /** The token of an account for all, which pages and the text of a start show. */
  readonly shownToken?: ShownToken;
  /** Hints for paths that have no page: why not, by path. */
  readonly missingPages?: Readonly<Record<string, string>>;
  /** A request has a token that is not of this gateway. */
  readonly tokens?: ForeignTokens;
  /** A request of the REST API has a viewer: it is handled here, in place of the core's handler. */
  handleRest?(exchange: Exchange, viewer: Viewer, recheck: Recheck): Promise<HttpResponse>;
  /** Makes what responds to clients that want to follow a read of the REST API; undefined for any other request. */
  createFollower?(pipeline: FollowParts): (read: FollowedRead) => Task['follow'];
  /** How much longer, in milliseconds, a request may take. */
  readonly longest?: number;
  /**
   * A request is about to read the viewer's data: it waits until this settles, and gets the response if there is one.
   * @returns undefined if there is nothing to wait for.
   */
  beforeRead?(exchange: Exchange, viewer: Viewer): Promise<HttpResponse | undefined> | undefined;
  /**
   * An operation reads: the SQL interface for all its statements, in place of the core's.
   * @param guard runs each statement after the last wait before it, or throws if the token has ended, or may not write.
   */
  sqlFor?(viewer: Viewer, guard: Guard): OperationSql;
  /** A request may have written, and is about to be answered. It may add headers to the exchange. */
  afterWrite?(exchange: Exchange, response: HttpResponse | StreamedResponse): Promise<void>;
  /**
   * A viewer knows of a change, such as one of their own. It may be called for nothing.
   * @param isUnheard whether the change may not have been announced here.
   */
  changed?(viewerId: number, isUnheard: boolean): void;
  /** The gateway listens. @param url such as `http://127.0.0.1:4000`. */
  serving?(url: string): void;
  began?(exchange: Exchange): void;
  ended?(outcome: Outcome): void;
  /** How many connections it may have open. */
  readonly connections?: number;
  /** A probe asks whether the gateway is ready: a line of the response. */
  readyLine?(): string;
  readonly metrics?: readonly Metric[];
  /** Entries of the text that a start prints. */
  readonly lines?: readonly BannerEntry[];
  /** The gateway closes. What was opened later is closed before. */
  close?(): Promise<void>;
}

export type Guard = <Result>(statement: () => Promise<Result>, isWrite?: boolean) => Promise<Result>;

/** Tokens of another service. */
export interface ForeignTokens {
  /** The viewer of a token that was checked a short while ago. */
  known(authorization: string | undefined): Viewer | undefined;
  /** @param address of the client. @returns null for a token that is invalid, or an error if it cannot be checked now. */
  authenticate(
    authorization: string | undefined,
    address: string,
  ): Promise<{ readonly viewer: Viewer | null } | { readonly error: HttpError; readonly retryAfter: number }>;
  /** Whether the token of a viewer is still valid. It is asked for a stream that is open. */
  recheck(viewer: Viewer): Promise<boolean>;
  /** After how many seconds a stream asks again: no change is announced when such a token ends. */
  readonly maxAge: number;
}

/** A path of its own. Its requests are authenticated and counted like others. No page of another site may use it. */
export interface EndpointHook extends OwnEndpoint {
  readonly path: string;
  createHandler(
    pipeline: PipelineParts,
  ): (exchange: Exchange, viewer: Viewer | null) => Promise<HttpResponse | StreamedResponse>;
}

export interface PipelineParts {
  readonly persisted: NamedOperations;
  readonly recheck: Recheck;
  /** Runs a request of the REST or GraphQL API inside another one, as if the client had sent it. */
  run(outer: Exchange, inner: Exchange, viewer: Viewer): Promise<HttpResponse | StreamedResponse>;
}

export interface FollowParts {
  readonly live: LiveReads;
  readonly recheck: Recheck;
  /** The form of a response that the client gets, with its entity tag. */
  formFor(exchange: Exchange, response: HttpResponse): HttpResponse | Promise<HttpResponse>;
}

/** Takes over connections whose clients ask for another protocol (RFC 9110, section 7.8). */
interface UpgradeHook {
  accepts(request: IncomingMessage): boolean;
  /** The handler gets the exchange of each accepted request, and has to end it. */
  createHandler(pipeline: UpgradeParts): (exchange: Exchange, socket: Duplex, head: Buffer) => Promise<void>;
}

/** What a request needs that comes by another protocol. */
export interface UpgradeParts {
  respond(exchange: Exchange): Promise<HttpResponse | StreamedResponse>;
  authorize(exchange: Exchange): Access | Promise<Access>;
  /** Calls back, at most once, when the token of a viewer has ended. @returns what ends the watch. */
  watchToken(viewer: Viewer, onEnded: (problem: TokenProblem) => void): () => void;
  readonly cors: Pick<Cors, 'rejectPage'>;
  readonly listener: ExchangeListener;
  /** Aborted when the gateway closes. */
  readonly closing: AbortSignal;
  /** Must be called with each exchange that has its response: it has no deadline after that. */
  responded(exchange: Exchange): void;
}

/** The viewer, null for an anonymous client or an expired token; or the response to a client that is rejected. */
export type Access = { readonly viewer: Viewer | null; readonly hasExpired: boolean } | HttpResponse;

/** A metric whose value is kept elsewhere. */
export interface Metric {
  /** Without `dovetail_`. It ends in `_total` if its value only grows. */
  readonly name: string;
  readonly help: string;
  /** Called when the metrics are requested. */
  read(): MetricValues;
  readonly label?: string;
  /** How values of several workers are combined. By default their sum. */
  readonly aggregator?: 'min' | 'sum';
}

/** A number, or one for each value of the label. */
export type MetricValues = number | Iterable<readonly [label: string, value: number]>;

export type BannerEntry = readonly [name: string, text: string];

/** The name of a check, and the check itself, which changes nothing. */
export type Check = readonly [
  name: string,
  find: () => Found | Promise<Found>,
  /** Whether a problem here makes the checks after it pointless. */
  isVital?: boolean,
];

/** The state, if all is well; or the problem, and what to do about it. Undefined where the check does not apply. */
export type Found = string | { readonly says: string; readonly advice?: string } | undefined;
