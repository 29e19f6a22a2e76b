/** The mirror as a part of the gateway: authentication of its clients, its accounts, and the requests to the upstream. */

import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { Logger } from 'pino';
import { digestOf, isIssued } from '../auth/tokens.ts';
import type { Viewer } from '../auth/viewer.ts';
import type { Config } from '../config/config.ts';
import type { ServerConfig } from '../database/connection/client.ts';
import type { ChangeFeed } from '../database/feed/changeFeed.ts';
import type { Sql } from '../database/reader/sql.ts';
import { resultWithin } from '../database/waiting.ts';
import { clientError, messages } from '../errors.ts';
import type { Exchange } from '../http/exchange.ts';
import type { HttpResponse } from '../http/response.ts';
import type { UpstreamAccount } from '../schema/context.ts';
import type { Reader, UpstreamAccounts, UpstreamWrite } from '../upstream/access.ts';
import {
  type Credential,
  createUpstreamTokens,
  type TokenCheck,
  type UpstreamTokens,
} from '../upstream/tokens.ts';
import {
  createUpstream,
  isForbidden,
  type Timing,
  Unauthorized,
  type Upstream,
  UpstreamBusy,
  UpstreamError,
} from '../upstream/upstream.ts';
import { identifyByAnyRoute, identifyByUsersMe, readAccountId } from './account.ts';
import { type Accounts, createAccounts, type MirrorFigures } from './accounts.ts';
import { activationTiming, createActivation } from './activation.ts';
import { createDetailsOnDemand } from './detailsOnDemand.ts';
import { recordId } from './fields.ts';
import { type WaitLimits, waitUntilFresh } from './freshness.ts';
import { checkMirror } from './mirror.ts';
import type { MirroredAccount, WriteScope } from './mirroredAccount.ts';
import { allParts, type Part } from './pullAccount.ts';
import { tokenStep } from './report.ts';
import { announceWrite } from './storedFreshness.ts';

export interface MirrorService {
  readonly upstream: UpstreamAccount;
  /** The upstream's tokens; undefined if clients have only tokens of the gateway's own. */
  readonly tokens: UpstreamTokens | undefined;
  /** Whether the upstream token of a viewer is still valid. */
  isValid(viewer: Viewer): Promise<boolean>;
  /** Must be called with a viewer who knows of a change that may not have been announced here. */
  noteChange(viewerId: number): void;
  /** Waits until the viewer's account is here and fresh. Returns a response if the request has to ask again. */
  waitUntilFresh(exchange: Exchange, viewer: Viewer): Promise<HttpResponse | undefined>;
  /** How requests of the REST API are forwarded; undefined if they are not. */
  readonly forwarding: UpstreamAccounts | undefined;
  status(): string;
  figures(): MirrorFigures;
  close(): Promise<void>;
}

export interface MirrorServiceOptions {
  readonly pool: pg.Pool;
  /** The connection for sessions of their own; undefined over the embedded engine, which no other process can have open. */
  readonly direct: ServerConfig | undefined;
  readonly sql: Sql;
  readonly feed: ChangeFeed;
  readonly logger: Logger;
  /** Called with each user whose rows have changed here. */
  onChanged(userId: number): void;
  readonly timing?: Partial<Timing>;
  readonly waits?: Partial<WaitLimits>;
  /** For how long after its last use a token is remembered, and its account refreshed, in milliseconds. */
  readonly idle?: number;
  /** After how many milliseconds a token is checked upstream again, at the latest; a minute unless given. */
  readonly tokenMaxAge?: number;
}

type Settings = Pick<
  Config,
  'DATABASE_URL' | 'DATA_DIR' | 'UPSTREAM_URL' | 'UPSTREAM_TOKEN' | 'UPSTREAM_INTERVAL' | 'UPSTREAM_RATE'
>;

/** How long, in milliseconds, a write waits at most until all gateways have been told. */
const longestNote = 5_000;

/** For requests that a client waits for: no retries, and no long pause. */
const checkTiming: Partial<Timing> = { timeout: 10_000, retries: 0, longestPause: 1_000 };

const usualWaits: WaitLimits = {
  arrival: 10_000,
  freshness: 10_000,
  awakening: 3_000,
  forwarding: 15_000,
};

/** After how many milliseconds a token is checked upstream again. */
const usualTokenMaxAge = 60_000;

/** What the functions below share. */
interface Parts extends MirrorServiceOptions {
  readonly config: Settings;
  readonly base: string;
  readonly accounts: Accounts;
  readonly check: Check;
  readonly waits: WaitLimits;
  /** How long requests may wait. */
  readonly timing: Partial<Timing>;
}

/**
 * Starts to mirror the accounts of the upstream that the settings name, if they name one.
 * @throws {SetupError} for a database that holds other data.
 */
export async function openMirrorService(
  config: Settings,
  options: MirrorServiceOptions,
): Promise<MirrorService | undefined> {
  const { UPSTREAM_URL: base } = config;
  if (base === undefined) return undefined;
  const { timing = {}, idle = 10 * 60_000 } = options;
  await checkMirror(options.pool, base);
  const own = config.UPSTREAM_TOKEN;
  const identify = own === undefined ? identifyByUsersMe : identifyByAnyRoute;
  const accounts = createAccounts({
    ...options,
    identify,
    base,
    timing,
    interval: config.UPSTREAM_INTERVAL * 1_000,
    // The one account that the settings name is refreshed even if no client uses it.
    idle: own === undefined ? idle : Number.POSITIVE_INFINITY,
    rate: config.UPSTREAM_RATE,
    // Its clients need tokens of the gateway's own.
    next: own === undefined ? undefined : tokenStep('your_name', config),
    onTokenStatus(credential, said, askedAt) {
      tokens?.noteStatus(credential, said, askedAt);
      if (said === 'another') following?.end();
    },
  });
  const check = createCheck(base, accounts, own === undefined, { ...checkTiming, ...timing });
  const parts: Parts = {
    ...options,
    config,
    base,
    accounts,
    check,
    waits: { ...usualWaits, ...options.waits },
    timing: { ...activationTiming, ...timing },
  };
  const tokens = own === undefined ? openTokens(parts, idle) : undefined;
  const following = own === undefined ? undefined : mirrorConfiguredAccount(parts, own);
  const writes = createWrites(parts);
  return {
    tokens,
    forwarding: createForwarding(parts, tokens, writes),
    upstream: createUpstreamAccount(parts, tokens, writes),
    async isValid(viewer) {
      if (!(await tokens?.isValid(viewer))) return false;
      // An open stream counts as use of the account.
      accounts.getOrAdd(viewer.id).touch();
      return true;
    },
    noteChange: accounts.noteChange,
    waitUntilFresh: async (exchange, viewer) => {
      const account = await accounts.of(viewer.id);
      return account && waitUntilFresh(exchange, account, parts.waits);
    },
    status: accounts.status,
    figures: accounts.figures,
    async close() {
      tokens?.close();
      await following?.stop();
      await accounts.close();
    },
  };
}

/**
 * Mirrors the account of the one token that the settings name, once the upstream says whose it is. If it becomes another account's,
 * nothing is read or forwarded with it any more: clients have tokens of the first account.
 */
function mirrorConfiguredAccount(
  { accounts, check, config, logger, tokenMaxAge = usualTokenMaxAge }: Parts,
  token: string,
) {
  const end = new AbortController();
  const { signal } = end;
  let account: MirroredAccount | undefined;
  let credential: Credential | undefined;

  function begin(userId: number): void {
    account = accounts.getOrAdd(userId);
    credential = { token, viewer: { id: userId, tokenId: undefined } };
    account.add(credential);
    account.touch();
  }

  function endWithToken(): void {
    if (!credential) return;
    account?.remove(credential);
    credential = undefined;
    end.abort();
    logger.error(
      'UPSTREAM_TOKEN belongs to another user now: set a token of the mirrored account, or use another database',
    );
  }

  const following = (async () => {
    while (!signal.aborted) {
      const checked = await check(token, account?.id, signal);
      if (checked.kind === 'valid' && !account) begin(checked.userId);
      if (checked.kind === 'valid' && account?.id !== checked.userId) endWithToken();
      if (checked.kind === 'invalid')
        accounts.noteFailure(new Unauthorized('', { failure: 'rejected the token' }));
      const pause = account ? tokenMaxAge : config.UPSTREAM_INTERVAL * 1_000;
      await sleep(pause, undefined, { signal }).catch(() => {});
    }
  })();
  return {
    end: endWithToken,
    async stop() {
      end.abort();
      await following;
    },
  };
}

/** The tokens that clients bring. Each lets its account be read while it is in use. */
function openTokens(
  { accounts, check, sql, logger, tokenMaxAge = usualTokenMaxAge }: Parts,
  idle: number,
): UpstreamTokens {
  const closing = new AbortController();
  const tokens = createUpstreamTokens({
    async check(token, viewer) {
      // A token of the gateway's own is never shown to the upstream, even if it was revoked.
      if (!viewer && (await isIssued(sql, token))) return { kind: 'invalid' };
      return check(token, viewer?.id, closing.signal);
    },
    onBegin(credential) {
      const account = accounts.getOrAdd(credential.viewer.id);
      account.budget.note();
      account.add(credential);
    },
    onEnd(credential) {
      const { id } = credential.viewer;
      accounts.getOrAdd(id).remove(credential);
      accounts.removeUnreachable(id);
    },
    onOther: () =>
      logger.warn(
        'the upstream says that a token belongs to another user: what it was used for here has ended',
      ),
    ttl: tokenMaxAge,
    idle,
  });
  return {
    ...tokens,
    close() {
      closing.abort();
      tokens.close();
    },
  };
}

/** Reads that are sent with a token. It holds the digest of the token alone. */
function readerOf({ token }: Credential, tokens: UpstreamTokens | undefined): Reader {
  const id = digestOf(token);
  return { id, isConfirmedSince: async (since) => !tokens || tokens.isConfirmedSince(id, since) };
}

/** How requests of viewers are forwarded to their accounts. */
function createForwarding(
  { accounts, base, waits }: Parts,
  tokens: UpstreamTokens | undefined,
  writes: Writes,
): UpstreamAccounts {
  return {
    base,
    longest: waits.forwarding,
    onWrite: writes.add,
    unreachable: tokens
      ? { status: 503, message: messages.accountUnreachable }
      : { status: 502, message: messages.upstreamUnusable },
    accessFor(viewer) {
      const account = accounts.known(viewer.id);
      // A request is never sent with the token of another client, which may be another account's by now.
      const credential = tokens ? tokens.credentialOf(viewer) : account?.credential;
      if (!account || !credential) return undefined;
      return {
        accountId: account.id,
        token: credential.token,
        budget: account.budget,
        reader: readerOf(credential, tokens),
        noteRejected() {
          if (tokens) tokens.noteStatus(credential, 'doubtful', performance.now());
          else accounts.noteFailure(new Unauthorized('', { failure: 'rejected the token' }));
        },
        noteWrite: (write) => writes.note(account.id, scopeOf(write)),
      };
    },
  };
}

/** Notes writes of clients: here, where listeners are called with the id of the account, and for all gateways. */
function createWrites({ accounts, pool }: Pick<Parts, 'accounts' | 'pool'>) {
  const listeners = new Set<(accountId: number) => void>();
  return {
    add: (listener: (accountId: number) => void) => void listeners.add(listener),
    /** @param scope what has to be read again; nothing if what is here is brought up to date by the caller. */
    async note(accountId: number, scope?: WriteScope): Promise<void> {
      for (const listener of listeners) listener(accountId);
      const read = scope && accounts.known(accountId)?.noteWrite(scope);
      await resultWithin(longestNote, Promise.all([announceWrite(pool, accountId), read]));
    },
  };
}

type Writes = ReturnType<typeof createWrites>;

/** What a write may have changed: the session that its path names, and lists. */
function scopeOf({ method, path, isDone }: UpstreamWrite): WriteScope {
  const [, named, below] = /^\/dtt\/sessions\/(\d+)(\/.+)?/.exec(path) ?? [];
  const id = recordId.safeParse(named).data;
  const isDeleted = isDone && method === 'DELETE' && below === undefined;
  return { parts: partsOf(path), session: id === undefined ? undefined : { id, isDeleted } };
}

/** Which lists a write to a path may have changed. */
function partsOf(path: string): readonly Part[] {
  if (/^\/dtt\/(templates|settings)(\/|$)/.test(path)) return ['dttTemplates'];
  if (/^\/lkbx\/sessions?(\/|$)/.test(path)) return ['lkbxDevices', 'locks'];
  return allParts;
}

/** The operations that resolvers carry out upstream. */
function createUpstreamAccount(
  { accounts, pool, logger, timing }: Parts,
  tokens: UpstreamTokens | undefined,
  writes: Writes,
): UpstreamAccount {
  async function upstreamFor(viewer: Viewer) {
    const account = await accounts.of(viewer.id);
    if (!account) return undefined;
    const upstream = account.upstreamFor(tokens?.credentialOf(viewer), 'demand', timing);
    return { upstream, budget: account.budget, inTurn: account.activateInTurn };
  }
  return {
    activate: createActivation({
      pool,
      logger,
      upstreamFor,
      onActivated: ({ id }) => writes.note(id),
      onUncertain: ({ id }) => writes.note(id, { parts: ['dttTemplates'] }),
      unreachable: tokens
        ? clientError('SERVICE_UNAVAILABLE', messages.accountUnreachable)
        : clientError('BAD_GATEWAY', messages.upstreamUnusable),
    }),
    fetchDetails: createDetailsOnDemand({ pool, logger, upstreamFor }),
  };
}

/** After how many seconds the upstream may be asked about a token again; undefined if it did not respond. */
function retryAfterOf(error: unknown): number | undefined {
  if (error instanceof UpstreamBusy) return error.retryAfter;
  return error instanceof UpstreamError && error.failure.status !== undefined ? 1 : undefined;
}

/** Asks the upstream whose token it is. @param userId the user of a token that is known. */
type Check = (token: string, userId?: number, signal?: AbortSignal) => Promise<TokenCheck>;

function createCheck(base: string, accounts: Accounts, isStrict: boolean, timing: Partial<Timing>): Check {
  const idOf = async (upstream: Upstream, signal: AbortSignal | undefined) =>
    isStrict ? readAccountId(upstream, signal) : (await identifyByAnyRoute(upstream, signal)).id;
  return async (token, userId, signal) => {
    // Not delayed by the budget: a revoked token would stay valid for as long as somebody spends the budget.
    if (userId !== undefined) accounts.getOrAdd(userId).budget.note();
    try {
      return { kind: 'valid', userId: await idOf(createUpstream({ base, token, timing }), signal) };
    } catch (error) {
      if (error instanceof Unauthorized || isForbidden(error)) return { kind: 'invalid' };
      if (!signal?.aborted) accounts.noteFailure(error);
      return { kind: 'away', retryAfter: retryAfterOf(error) };
    }
  };
}
