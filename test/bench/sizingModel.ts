/** Sizes on paper: what so many users come to, from what was measured of one. No figure is in here that is not said. */

/** What was measured, each for one of it: bytes and microseconds of processor time. */
export interface Measured {
  /** On disk, with indexes: a session, one of its segments, and a user with all else that is theirs. */
  readonly sessionBytes: number;
  readonly segmentBytes: number;
  readonly userBytes: number;
  /** Of the write-ahead log: a session with five segments, an activation, and an announcement in either. */
  readonly sessionWal: number;
  readonly activationWal: number;
  readonly messageWal: number;
  /** Of PostgreSQL: a session that is written, an activation, and a response that is computed. */
  readonly sessionServer: number;
  readonly activationServer: number;
  readonly readServer: number;
  /** Of a gateway: a response that is cached, one that is computed, an activation, and an announcement that is heard. */
  readonly cachedGateway: number;
  readonly computedGateway: number;
  readonly activationGateway: number;
  readonly messageGateway: number;
  /** Of a gateway's memory: a response that is cached, a subscription, and a process that has neither. */
  readonly responseMemory: number;
  readonly subscriptionMemory: number;
  readonly processMemory: number;
}

/** What a user does. A guess, and to be replaced by what yours do. */
export const habits = {
  sessions: 1,
  segments: 5,
  activations: 1,
  requests: 50,
  /** Those among them whose response is not cached. */
  computed: 10,
  /** How many times more is done in the busiest minutes than on the average. */
  peak: 5,
  /** How often a user comes in a day, and how many responses of theirs are cached then. */
  visits: 2,
  cached: 5,
  /** In seconds, as CACHE_MAX_AGE has it. */
  cachedFor: 300,
  /** The share of users with a subscription, in the busiest minutes. */
  subscribed: 0.02,
};

/** What a transaction with a session, and one with an activation, announces: each statement the owner. */
const messagesOf = { session: 2, activation: 1 };

const day = 86_400;
const largestId = 2 ** 31 - 1;
/** How much of a core may be busy in the busiest minutes. */
const busy = 0.5;

export interface Size {
  readonly users: number;
  readonly rowsPerDay: number;
  /** Of a year, in bytes. */
  readonly storage: number;
  /** All else is of the busiest minutes: transactions, bytes of the log, messages and requests a second. */
  readonly writes: number;
  readonly wal: number;
  readonly messages: number;
  readonly requests: number;
  /** Cores that these take, of the primary and of all gateways together, each half busy; and without what announcements take of a gateway's. */
  readonly primaryCores: number;
  readonly readCores: number;
  readonly gatewayCores: number;
  /** The share of a core that each process of a gateway is busy with announcements. */
  readonly feedShare: number;
  readonly cache: number;
  readonly streams: number;
  /** Days until the numbers of segments are used up. */
  readonly daysOfIds: number;
}

export function sizeOf(users: number, measured: Measured): Size {
  const atPeak = (perDay: number) => (users * perDay * habits.peak) / day;
  const sessions = atPeak(habits.sessions);
  const activations = atPeak(habits.activations);
  const computed = atPeak(habits.computed);
  const cached = atPeak(habits.requests) - computed;
  const messages = sessions * messagesOf.session + activations * messagesOf.activation;
  const cores = (microseconds: number) => microseconds / 1e6 / busy;
  const { segments } = habits;
  return {
    users,
    rowsPerDay: users * habits.sessions * (1 + segments),
    storage:
      users *
      (measured.userBytes +
        365 * habits.sessions * (measured.sessionBytes + segments * measured.segmentBytes)),
    writes: sessions + activations,
    wal: sessions * measured.sessionWal + activations * measured.activationWal,
    messages,
    requests: atPeak(habits.requests) + activations,
    primaryCores: cores(sessions * measured.sessionServer + activations * measured.activationServer),
    readCores: cores(computed * measured.readServer),
    gatewayCores: cores(
      cached * measured.cachedGateway +
        computed * measured.computedGateway +
        activations * measured.activationGateway,
    ),
    feedShare: (messages * measured.messageGateway) / 1e6,
    cache: atPeak(habits.visits) * habits.cachedFor * habits.cached * measured.responseMemory,
    streams: users * habits.subscribed * measured.subscriptionMemory,
    daysOfIds: largestId / (users * habits.sessions * segments),
  };
}
