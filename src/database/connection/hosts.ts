/**
 * Which of several hosts is the one that takes writes: the primary, of which another may take over at any moment.
 *
 * All connections of a process go to one host at a time. New ones go to the one that took writes last, and are looked at
 * before they are used. When that fails all hosts are asked; when another one takes writes, every connection to the one
 * before is given up, whatever it is doing. So nothing is read from a server that was left, and a change feed, whose
 * connections are given up as well, begins anew.
 *
 * A server that has taken over is on a timeline of its own, later than the one that it was a standby of. Whoever was on a
 * timeline never goes back to an earlier one: a primary that was replaced, and comes back as though nothing had happened,
 * does not have what was written since.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { DatabaseHosts, Target } from '../../databaseUrl.ts';
import { errorText } from '../../errors.ts';

export interface HostPort {
  readonly host: string;
  readonly port: number;
}

/** Where a new connection goes. */
export interface HostRoute {
  readonly place: HostPort;
  /** Which server it is for: another number for each that took the place of the one before. */
  readonly era: number;
}

export interface Hosts {
  /** @throws {NoHost} when none can be used, which is known for a moment. */
  find(): Promise<HostRoute>;
  /** Has a client closed when the host is left that it connects to. */
  add(client: pg.Client, route: HostRoute): void;
  /**
   * Looks at a client that has connected.
   * @throws an error when its host is not, or no longer, the one that is meant.
   */
  check(client: pg.Client, route: HostRoute): Promise<void>;
  /** Takes note that a host could not be connected to, or is not the one that is meant. */
  miss(route: HostRoute): void;
  /** What each of them is now, or why that cannot be told. */
  look(): Promise<
    readonly { readonly place: HostPort; readonly obstacle?: string; readonly error?: unknown }[]
  >;
  /** Has the listener called when another server has taken the place of the one before. */
  onMoved(listener: (place: HostPort) => void): void;
}

/** What a host says of itself. */
interface HostState {
  /** Why it cannot be used, if it cannot. */
  readonly obstacle?: string;
  /** The timeline of its log, 0 where it does not tell. */
  readonly timeline: number;
}

/** How long, in milliseconds, a host may take to say what it is. */
const longestLook = 3_000;

/** How long, in milliseconds, it is waited for other hosts once one was found that takes writes. */
const longestForOthers = 500;

/** How long, in milliseconds, it holds that there is none: so that not every request asks all of them. */
const failureHolds = 100;

/** That no host can be used, and why not: each with what is wrong with it. */
export class NoHost extends Error {
  override name = 'NoHost';
  readonly failures: readonly { readonly place: HostPort; readonly error: unknown }[];

  constructor(failures: NoHost['failures']) {
    const list = failures.map(({ place, error }) => `${hostPortText(place)}: ${errorText(error)}`);
    super(`none of the hosts can be used: ${list.join('; ')}`);
    this.failures = failures;
  }
}

export const hostPortText = ({ host, port }: HostPort): string =>
  `${host.includes(':') ? `[${host}]` : host}:${port}`;

/** Why a host is not the one that is meant, though it can be reached. */
export class NotPrimary extends Error {
  override name = 'NotPrimary';
}

interface Candidate extends HostPort {
  readonly url: string;
}

export function createHosts({ urls, target }: DatabaseHosts): Hosts {
  const candidates = urls.map(candidateOf);
  const eras = createEras();
  /** The latest timeline that was seen. */
  let timeline = 0;
  /** The one that took writes last, and whether it is thought to do so. */
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
    return { place: last, era: eras.current() };
  }

  return {
    add: eras.add,
    onMoved: eras.onBegun,

    async look() {
      const seen = await lookAtAll(candidates, target);
      return seen.map(({ candidate: place, state, error }) => ({ place, ...state, error }));
    },

    find() {
      if (last && isWell) return Promise.resolve({ place: last, era: eras.current() });
      if (searching) return searching;
      const begun = search();
      searching = begun;
      const forget = () => {
        searching = undefined;
      };
      begun.then(forget, () => setTimeout(forget, failureHolds).unref());
      return begun;
    },

    async check(client, { place, era }) {
      const state = await lookAt(client, target);
      const obstacle = obstacleOf(state, timeline);
      if (obstacle !== undefined) throw new NotPrimary(obstacle);
      if (era !== eras.current()) throw new NotPrimary('another server has taken over meanwhile');
      // At the same address.
      if (state.timeline > timeline) {
        timeline = state.timeline;
        eras.begin(place, client);
      }
    },

    miss({ place, era }) {
      if (era === eras.current() && place === last) isWell = false;
    },
  };
}

/** Connections, each of the era that it was begun in: those of one that is over are given up, whatever they are doing. */
function createEras() {
  const clients = new Map<pg.Client, number>();
  const listeners: ((place: HostPort) => void)[] = [];
  let era = 0;
  return {
    current: () => era,
    add(client: pg.Client, { era: begun }: HostRoute): void {
      clients.set(client, begun);
      client.once('end', () => clients.delete(client));
    },
    /** @param first the connection by which it was found out, which is one of the new era. */
    begin(place: HostPort, first?: pg.Client): void {
      era++;
      if (first) clients.set(first, era);
      for (const [client, begun] of clients) if (begun !== era) client.connection.stream.destroy();
      for (const listener of listeners) listener(place);
    },
    onBegun: (listener: (place: HostPort) => void) => listeners.push(listener),
  };
}

/** Why a host cannot be used by whoever was on a timeline already. */
function obstacleOf(state: HostState, timeline: number): string | undefined {
  if (state.obstacle !== undefined) return state.obstacle;
  return state.timeline !== 0 && state.timeline < timeline
    ? `it was the primary before, on timeline ${state.timeline}: another server has taken over, on timeline ${timeline}`
    : undefined;
}

/**
 * Of two that both take writes, the one that has taken over; of equals, the one that was used last.
 * @throws {NoHost} when none does.
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
      place: { host, port },
      error: state ? new NotPrimary(obstacleOf(state, timeline)) : error,
    })),
  );
}

function candidateOf(url: string): Candidate {
  // As `pg` reads it for connections, with what the URL leaves to the environment.
  const { host, port } = new pg.Client({ connectionString: url });
  return { url, host, port };
}

interface Seen {
  readonly candidate: Candidate;
  readonly state?: HostState;
  readonly error?: unknown;
}

/** Asks all at once. Those that say nothing are waited for only while no other takes writes. */
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
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: longestLook });
  client.on('error', () => {});
  try {
    await client.connect();
    return await lookAt(client, target);
  } finally {
    // Not `client.end()`, which waits for what a dead connection never says.
    client.end().catch(() => {});
    setTimeout(() => client.connection.stream.destroy(), 1_000).unref();
  }
}

/** PostgreSQL's codes of what does not exist, is not done, or may not be asked. */
const cannotTell = new Set<unknown>(['42883', '0A000', '42501']);

const isReadOnly = `pg_is_in_recovery() AS "isStandby", current_setting('transaction_read_only') = 'on' AS "isReadOnly"`;
const timelineOf = `CASE WHEN pg_is_in_recovery() THEN 0
  ELSE ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::int END AS timeline`;

async function lookAt(client: pg.Client, target: Target): Promise<HostState> {
  if (target === 'any') return { timeline: 0 };
  const ask = async (columns: string) => {
    const query: pg.QueryConfig & { query_timeout: number } = {
      text: `SELECT ${columns}`,
      query_timeout: longestLook,
    };
    const { rows } = await client.query<{ isStandby: boolean; isReadOnly: boolean; timeline?: number }>(
      query,
    );
    return rows[0];
  };
  // Not everything that speaks for a server has a log that can be asked about.
  const found = await ask(`${isReadOnly}, ${timelineOf}`).catch((error: unknown) =>
    error instanceof pg.DatabaseError && cannotTell.has(error.code) ? ask(isReadOnly) : Promise.reject(error),
  );
  if (!found || found.isStandby) return { obstacle: 'it is a standby', timeline: 0 };
  if (target === 'read-write' && found.isReadOnly)
    return { obstacle: 'it takes no writes (default_transaction_read_only)', timeline: 0 };
  return { timeline: found.timeline ?? 0 };
}
