/** Calculates the resources for many users from the measurements for one. It contains no figures that the documentation does not show. */

/** The measurements: bytes and microseconds of processor time, each for one unit. */
export interface Measured {
  /** On disk, with indexes: a session, one of its segments, and a user with all of their other records. */
  readonly sessionBytes: number;
  readonly segmentBytes: number;
  readonly userBytes: number;
  /** Of the write-ahead log: a session with five segments, an activation, and the announcement of each. */
  readonly sessionWal: number;
  readonly activationWal: number;
  readonly messageWal: number;
  /** Of PostgreSQL: a session that is written, an activation, and a response that is computed. */
  readonly sessionServer: number;
  readonly activationServer: number;
  readonly readServer: number;
  /** Of a gateway: a cached response, a computed response, an activation, and a received announcement. */
  readonly cachedGateway: number;
  readonly computedGateway: number;
  readonly activationGateway: number;
  readonly messageGateway: number;
  /** Of a gateway's memory: a cached response, a subscription, and a process without both. */
  readonly responseMemory: number;
  readonly subscriptionMemory: number;
  readonly processMemory: number;
}

/** The activity of a user: assumptions, to be replaced by those of your users. */
export const habits = {
  sessions: 1,
  segments: 5,
  activations: 1,
  requests: 50,
  /** The requests among them whose response is not cached. */
  computed: 10,
  /** The ratio of the load in the busiest minutes to the average. */
  peak: 5,
  /** The visits of a user in a day, and the number of responses that are cached at each. */
  visits: 2,
  cached: 5,
  /** In seconds. */
  cachedFor: 300,
  /** The share of users with a subscription, in the busiest minutes. */
  subscribed: 0.02,
};

/** The announcements of a transaction with a session and of one with an activation: each statement announces the owner. */
const messagesOf = { session: 2, activation: 1 };

const day = 86_400;
const largestId = 2 ** 31 - 1;
/** How much of a core may be busy in the busiest minutes. */
const busy = 0.5;

export interface Size {
  readonly users: number;
  readonly rowsPerDay: number;
  /** Bytes in a year. */
  readonly storage: number;
  /** All others are for the busiest minutes: transactions, bytes of the log, messages and requests a second. */
  readonly writes: number;
  readonly wal: number;
  readonly messages: number;
  readonly requests: number;
  /** The cores for these, of the primary and of all gateways together, each half busy; and those of the gateways without announcements. */
  readonly primaryCores: number;
  readonly readCores: number;
  readonly gatewayCores: number;
  /** The share of a core that announcements take in each process of a gateway. */
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
