/**
 * The mirror as a part of the gateway. The whole model:
 *
 * - A token of the upstream opens one account there. While clients use it, its account is looked after here (`accounts.ts`), under the
 *   upstream's own ids. REST never reads what is here: the proxy forwards it, and stores responses for a short while.
 * - A run copies the lists of an account into the database, and then, record by record, the details that lists leave out. One run at a
 *   time writes the lists of an account, in whichever gateway (`run.ts`). Between runs, the copy gets older, and every response says how old it is.
 * - A request of GraphQL reads the copy. It waits for a run if the copy is not here, or older than it asks for, or if a client has written
 *   since (`freshness.ts`); and for details that it selects and that are not here yet (`completeReads.ts`).
 * - A write goes upstream, and is not repeated here. All gateways are told, and the copy counts as outdated until a run that began later
 *   has read it again. So nobody is shown what was before a write, even if the run fails.
 */

import type pg from 'pg';
import { digestOf } from '../../../auth/tokens.ts';
import type { Viewer } from '../../../auth/viewer.ts';
import { closeAll } from '../../../database/closing.ts';
import type { RunInTurn } from '../../../database/turns.ts';
import { resultWithin } from '../../../database/waiting.ts';
import { clientError } from '../../../errors.ts';
import type { Exchange } from '../../../http/exchange.ts';
import type { HttpResponse } from '../../../http/response.ts';
import type { AccountElsewhere } from '../../../schema/context.ts';
import type { Timing } from '../client/upstream.ts';
import type { UpstreamConfig } from '../settings.ts';
import { announceWrite, type WriteScope } from './accountFreshness.ts';
import { type Accounts, type AccountsOptions, createAccounts } from './accounts.ts';
import { createActivation } from './activation.ts';
import { completeReads, detailModels } from './completeReads.ts';
import { type Credentials, type CredentialsOptions, openCredentials } from './credentials.ts';
import { createDetailsOnDemand } from './details.ts';
import { type WaitLimits, waitUntilFresh } from './freshness.ts';
import { checkMirror } from './mirror.ts';
import { allParts } from './pull.ts';

type Opened = NonNullable<Awaited<ReturnType<typeof openMirrorService>>>;

/** The mirror for the gateway. Without `forwarding`, REST is served from the mirror as well. */
export type MirrorService = Omit<Opened, 'forwarding'> & Partial<Pick<Opened, 'forwarding'>>;

export interface MirrorServiceOptions
  extends Pick<AccountsOptions, 'pool' | 'feed' | 'logger' | 'onChanged'>,
    Pick<CredentialsOptions, 'sql'> {
  readonly timing?: Partial<Timing>;
  readonly waits?: Partial<WaitLimits>;
  /** For how long after its last use a token is remembered, and its account refreshed, in milliseconds. */
  readonly idle?: number;
  /** After how many milliseconds, at the latest, a token is checked upstream again. By default a minute. */
  readonly tokenMaxAge?: number;
}

type Settings = Pick<
  UpstreamConfig,
  'UPSTREAM_URL' | 'UPSTREAM_TOKEN' | 'UPSTREAM_INTERVAL' | 'UPSTREAM_RATE'
>;

const usualWaits: WaitLimits = {
  arrival: 10_000,
  freshness: 10_000,
  awakening: 3_000,
  forwarding: 15_000,
  announcement: 5_000,
};

/**
 * Starts to mirror the accounts of the upstream that the settings name, if they name one.
 * @throws {SetupError} for a database that holds other data.
 */
export async function openMirrorService(config: Settings, options: MirrorServiceOptions) {
  const { UPSTREAM_URL: base, UPSTREAM_TOKEN: configured } = config;
  if (base === undefined) return undefined;
  const { pool, logger, timing = {}, idle = 10 * 60_000, tokenMaxAge: maxAge = 60_000 } = options;
  const hasConfiguredToken = configured !== undefined;
  const waits = { ...usualWaits, ...options.waits };
  const shared = { ...options, base, timing, interval: config.UPSTREAM_INTERVAL * 1_000 };
  await checkMirror(pool, base);
  const accounts = createAccounts({
    ...shared,
    idle: hasConfiguredToken ? Number.POSITIVE_INFINITY : idle,
    rate: config.UPSTREAM_RATE,
    onTokenStatus: (...status) => credentials.noteStatus(...status),
  });
  const credentials = openCredentials({ ...shared, accounts, configured, idle, maxAge });
  const writes = createWrites(accounts, pool, waits.announcement);
  const parts = { pool, logger, waits, base, accounts, credentials, writes };
  const { tokens } = credentials;
  return {
    /** The upstream tokens of clients; undefined if clients have only tokens of this gateway. */
    tokens,
    forwarding: createForwarding(parts),
    upstream: createUpstreamAccount(parts),
    /** Checks the upstream token of a viewer again, for a stream that is open. The stream counts as use of the token and the account. */
    async recheck(viewer: Viewer): Promise<boolean> {
      if (!(await tokens?.recheck(viewer))) return false;
      accounts.getOrAdd(viewer.id).touch();
      return true;
    },
    noteChange: accounts.noteChange,
    /** Waits until the viewer's account is here and fresh. Returns a response if the client has to ask again. */
    async waitUntilFresh(exchange: Exchange, viewer: Viewer): Promise<HttpResponse | undefined> {
      const account = await accounts.of(viewer.id);
      return account && waitUntilFresh(exchange, account, waits);
    },
    status: accounts.status,
    figures: accounts.figures,
    async close(): Promise<void> {
      await closeAll([credentials, accounts]);
    },
  };
}

/**
 * What follows a write that the upstream may have carried out:
 * 1. This gateway forgets the stored REST responses of the account (the listeners).
 * 2. All gateways are told, without waiting for a lock (`announceWrite`). At the same time, the account counts as outdated, first here
 *    (`AccountFreshness.noteWrite`) and then in the database (`FreshnessStore.storeWrite`).
 * 3. If clients use the account, a run reads what the write may have changed (`MirroredAccount.noteWrite`).
 */
function createWrites(accounts: Accounts, pool: pg.Pool, longest: number) {
  const listeners = new Set<(accountId: number) => void>();
  return {
    add: (listener: (accountId: number) => void) => void listeners.add(listener),
    /** Settles when all gateways know of the write, or after the longest wait. */
    note(accountId: number, scope: WriteScope): Promise<unknown> {
      for (const listener of listeners) listener(accountId);
      const noting = Promise.resolve(accounts.known(accountId)?.noteWrite(scope));
      return resultWithin(longest, Promise.allSettled([announceWrite(pool, accountId), noting]));
    },
  };
}

interface Parts extends Pick<CredentialsOptions, 'base' | 'logger' | 'accounts'> {
  readonly pool: pg.Pool;
  readonly waits: WaitLimits;
  readonly credentials: Credentials;
  readonly writes: ReturnType<typeof createWrites>;
}

/** How the proxy reaches the accounts of viewers. */
export type Forwarding = ReturnType<typeof createForwarding>;
export type UpstreamAccess = NonNullable<Awaited<ReturnType<Forwarding['accessFor']>>>;

function createForwarding({ base, waits, accounts, credentials, writes }: Parts) {
  return {
    base,
    /** How long, in milliseconds, the upstream may take to respond to a request that is forwarded. */
    longest: waits.forwarding,
    /** Calls the listener with the id of an account after each write of a client through this process. */
    onWrite: writes.add,
    /** The error for a viewer without a token for the account. */
    unreachable: credentials.unreachable,
    /** The access of a viewer; undefined if there is no token for the account. */
    async accessFor(viewer: Viewer) {
      // A request is never sent with the token of another client, which may be another account's by now.
      const credential = await credentials.of(viewer);
      const account = accounts.known(viewer.id);
      if (!account || !credential) return undefined;
      const { token } = credential;
      return {
        accountId: viewer.id,
        token,
        budget: account.budget,
        inTurn: account.onDemand,
        /** Identifies the token without holding it: a stored response may outlive the token. */
        tokenDigest: digestOf(token),
        /** Must be called when the upstream has rejected the token. */
        noteRejected: () => credentials.noteStatus(credential, 'doubtful', performance.now()),
        /**
         * Must be called after a write, below the base, that the upstream may have carried out. Settles once all gateways have been
         * told, or after the longest wait.
         */
        noteWrite: (path: string) => writes.note(viewer.id, scopeOf(path)),
      };
    },
  };
}

/** The operations of resolvers that need the upstream. */
function createUpstreamAccount(parts: Parts): AccountElsewhere {
  const { pool, logger, waits, accounts, credentials, writes } = parts;
  async function accountOf(viewer: Viewer, guard?: RunInTurn) {
    const account = await accounts.of(viewer.id);
    const token = await credentials.of(viewer);
    return (
      account && {
        upstream: account.upstreamFor(token, guard),
        budget: account.budget,
        refresh: () => resultWithin(waits.freshness, account.refresh(performance.now())),
      }
    );
  }
  const { code, message } = credentials.unreachable;
  const fetchDetails = createDetailsOnDemand({ pool, logger, accountOf });
  return {
    activate: createActivation({
      pool,
      logger,
      accountOf,
      onActivated: ({ id }) => writes.note(id, { parts: ['dttTemplates'] }),
      unreachable: clientError(code, message),
    }),
    incomplete: detailModels,
    wrapSql: (viewer, sql, watch) => completeReads(viewer, sql, watch, fetchDetails),
  };
}

/** What a write to a path may have changed. */
function scopeOf(path: string): WriteScope {
  if (/^\/dtt\/(templates|settings)(\/|$)/.test(path)) return { parts: ['dttTemplates'] };
  if (/^\/lkbx\/sessions?(\/|$)/.test(path)) return { parts: ['lkbxDevices', 'locks'] };
  return { parts: allParts, ofSession: /^\/dtt\/sessions\/./.test(path) };
}
