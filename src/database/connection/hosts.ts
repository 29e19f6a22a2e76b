/**
 * Finds the primary among several hosts: the one that accepts writes. Another host may take over at any moment.
 *
 * All connections of a process go to one host at a time. New connections go to the last known primary, and are checked
 * before they are used. If that fails, all hosts are asked. If another host is the primary now, every connection to the
 * former one is closed, whatever it is doing. So nothing is read from the former primary any more, and the change feed,
 * whose connections are closed as well, starts again.
 *
 * A promoted standby begins a new timeline with a higher number. This process never goes back to a lower one: a former
 * primary that comes back without having been made a standby lacks what was written since.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { DatabaseHosts, Target } from '../../config/databaseUrl.ts';
import { errorText } from '../../errors.ts';

export interface HostPort {
  readonly host: string;
  readonly port: number;
}

/** The host that a new connection goes to. */
export interface HostRoute {
  readonly address: HostPort;
  /** Counts the changes of the primary: a connection of an earlier era leads to a former primary. */
  readonly era: number;
}

export interface Hosts {
  /**
   * Finds the primary.
   * @throws {NoHost} if no host can be used. The error is remembered for a moment.
   */
  find(): Promise<HostRoute>;
  /** Registers a client, which is closed when another host becomes the primary. */
  add(client: pg.Client, route: HostRoute): void;
  /**
   * Checks a client that has connected.
   * @throws {NotPrimary} if its host is not the primary, or no longer.
   */
  check(client: pg.Client, route: HostRoute): Promise<void>;
  /** Notes that connecting to a host failed, or that it is not the primary. */
  miss(route: HostRoute): void;
  /** Asks each host for its state: why it cannot be used, if so, or the error that prevented asking. */
  look(): Promise<
    readonly { readonly address: HostPort; readonly obstacle?: string; readonly error?: unknown }[]
  >;
  /** Calls the listener whenever another server has become the primary. */
  onMoved(listener: (address: HostPort) => void): void;
}

/** The state of a host, as it reports it. */
interface HostState {
  /** Why it cannot be used; absent if it can. */
  readonly obstacle?: string;
  /** The timeline of its log, 0 if it does not report one. */
  readonly timeline: number;
}

/** How long, in milliseconds, a host may take to connect, and to report its state. */
const longestCheck = 3_000;

/** How long, in milliseconds, a search waits for the other hosts after it has found one that accepts writes. */
const longestForOthers = 500;

/** How long, in milliseconds, a failed search is remembered, so that not every request asks all hosts. */
const failureMemory = 100;

/** No host can be used. Has the reason for each. */
export class NoHost extends Error {
  override name = 'NoHost';
  readonly failures: readonly { readonly address: HostPort; readonly error: unknown }[];

  constructor(failures: NoHost['failures']) {
    const list = failures.map(({ address, error }) => `${hostPortText(address)}: ${errorText(error)}`);
    super(`none of the hosts can be used: ${list.join('; ')}`);
    this.failures = failures;
  }
}

export const hostPortText = ({ host, port }: HostPort): string =>
  `${host.includes(':') ? `[${host}]` : host}:${port}`;

/** A host can be reached, but is not the primary. */
export class NotPrimary extends Error {
  override name = 'NotPrimary';
}

interface Candidate extends HostPort {
  readonly url: string;
}

export function createHosts({ urls, target }: DatabaseHosts): Hosts {
  const candidates = urls.map(candidateOf);
  const eras = createEras();
  /** The highest timeline seen so far. */
  let timeline = 0;
  /** The last known primary, and whether it is assumed to be the primary still. */
  let last: Candidate | undefined;
  let isWell = false;
  let searching: Promise<HostRoute> | undefined;

  async function search(): Promise<HostRoute> {
    const seen = await lookAtAll(candidates, target);
    const best = bestOf(seen, timeline, last);
    if (last && (best.candidate !== last || best.timeline > timeline)) eras.begin(best.candidate);
    last = best.candidate;
    timeline = Math.max(timeline, best.timeline);
    isWell = true;
    return { address: last, era: eras.current() };
  }

  return {
    add: eras.add,
    onMoved: eras.onBegun,

    async look() {
      const seen = await lookAtAll(candidates, target);
      return seen.map(({ candidate: address, state, error }) => ({ address, ...state, error }));
    },

    find() {
      if (last && isWell) return Promise.resolve({ address: last, era: eras.current() });
      if (searching) return searching;
      const begun = search();
      searching = begun;
      const forget = () => {
        searching = undefined;
      };
      begun.then(forget, () => setTimeout(forget, failureMemory).unref());
      return begun;
    },

    async check(client, { address, era }) {
      const state = await lookAt(client, target);
      const obstacle = obstacleOf(state, timeline);
      if (obstacle !== undefined) throw new NotPrimary(obstacle);
      if (era !== eras.current()) throw new NotPrimary('another server has taken over meanwhile');
      // Another server has taken over at the same address.
      if (state.timeline > timeline) {
        timeline = state.timeline;
        eras.begin(address, client);
      }
    },

    miss({ address, era }) {
      if (era === eras.current() && address === last) isWell = false;
    },
  };
}

/** Remembers the era of each connection, and closes the connections of former eras. */
function createEras() {
  const clients = new Map<pg.Client, number>();
  const listeners: ((address: HostPort) => void)[] = [];
  let era = 0;
  return {
    current: () => era,
    add(client: pg.Client, { era: begun }: HostRoute): void {
      clients.set(client, begun);
      client.once('end', () => clients.delete(client));
    },
    /**
     * Begins a new era.
     * @param first the connection that revealed it, which belongs to the new era.
     */
    begin(address: HostPort, first?: pg.Client): void {
      era++;
      if (first) clients.set(first, era);
      for (const [client, begun] of clients) if (begun !== era) client.connection.stream.destroy();
      for (const listener of listeners) listener(address);
    },
    onBegun: (listener: (address: HostPort) => void) => listeners.push(listener),
  };
}

/** Why a host cannot be used, given the highest timeline seen so far; undefined if it can. */
function obstacleOf(state: HostState, timeline: number): string | undefined {
  if (state.obstacle !== undefined) return state.obstacle;
  return state.timeline !== 0 && state.timeline < timeline
    ? `it was the primary before, on timeline ${state.timeline}: another server has taken over, on timeline ${timeline}`
    : undefined;
}

/**
 * Chooses the primary: among hosts that accept writes, the one on the highest timeline, then the one that was used last.
 * @throws {NoHost} if no host can be used.
 */
function bestOf(seen: readonly Seen[], timeline: number, last: Candidate | undefined) {
  const usable = seen.flatMap(({ candidate, state }) =>
    state && obstacleOf(state, timeline) === undefined ? [{ candidate, timeline: state.timeline }] : [],
  );
  usable.sort(
    (one, other) =>
      other.timeline - one.timeline || Number(other.candidate === last) - Number(one.candidate === last),
  );
  const [best] = usable;
  if (best) return best;
  throw new NoHost(
    seen.map(({ candidate: { host, port }, state, error }) => ({
      address: { host, port },
      error: state ? new NotPrimary(obstacleOf(state, timeline)) : error,
    })),
  );
}

function candidateOf(url: string): Candidate {
  // `pg` takes what the URL leaves out from the environment, as it does for connections.
  const { host, port } = new pg.Client({ connectionString: url });
  return { url, host, port };
}

interface Seen {
  readonly candidate: Candidate;
  readonly state?: HostState;
  readonly error?: unknown;
}

/** Asks all hosts at once. Those that do not respond are waited for only while no other host accepts writes. */
async function lookAtAll(candidates: readonly Candidate[], target: Target): Promise<Seen[]> {
  const seen = new Map<Candidate, Seen>(
    candidates.map((candidate) => [candidate, { candidate, error: new Error(noResponse) }]),
  );
  const looks = candidates.map(async (candidate) => {
    try {
      const state = await lookFrom(candidate, target);
      seen.set(candidate, { candidate, state });
      return state.obstacle === undefined;
    } catch (error) {
      seen.set(candidate, { candidate, error });
      return false;
    }
  });
  const isFound = Promise.any(looks.map((look) => look.then((is) => is || Promise.reject())));
  const whileFound = isFound.then(() => sleep(longestForOthers));
  await Promise.race([Promise.all(looks), whileFound.catch(() => Promise.all(looks))]);
  return candidates.map((candidate) => seen.get(candidate) ?? { candidate });
}

const noResponse = 'it did not respond in time';

async function lookFrom({ url }: Candidate, target: Target): Promise<HostState> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: longestCheck });
  client.on('error', () => {});
  try {
    await client.connect();
    return await lookAt(client, target);
  } finally {
    // Not awaited: `end` waits for the server, which a dead connection never hears from.
    client.end().catch(() => {});
    setTimeout(() => client.connection.stream.destroy(), 1_000).unref();
  }
}

/** Codes of PostgreSQL: undefined function, feature not supported, insufficient privilege. */
const cannotTell = new Set<unknown>(['42883', '0A000', '42501']);

const isReadOnly = `pg_is_in_recovery() AS "isStandby", current_setting('transaction_read_only') = 'on' AS "isReadOnly"`;
const timelineOf = `CASE WHEN pg_is_in_recovery() THEN 0
  ELSE ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::int END AS timeline`;

async function lookAt(client: pg.Client, target: Target): Promise<HostState> {
  if (target === 'any') return { timeline: 0 };
  const ask = async (columns: string) => {
    const query: pg.QueryConfig & { query_timeout: number } = {
      text: `SELECT ${columns}`,
      query_timeout: longestCheck,
    };
    const { rows } = await client.query<{ isStandby: boolean; isReadOnly: boolean; timeline?: number }>(
      query,
    );
    return rows[0];
  };
  // Some servers that speak PostgreSQL's protocol cannot report the position in a log.
  const found = await ask(`${isReadOnly}, ${timelineOf}`).catch((error: unknown) =>
    error instanceof pg.DatabaseError && cannotTell.has(error.code) ? ask(isReadOnly) : Promise.reject(error),
  );
  if (!found || found.isStandby) return { obstacle: 'it is a standby', timeline: 0 };
  if (target === 'read-write' && found.isReadOnly)
    return { obstacle: 'it takes no writes (default_transaction_read_only)', timeline: 0 };
  return { timeline: found.timeline ?? 0 };
}
