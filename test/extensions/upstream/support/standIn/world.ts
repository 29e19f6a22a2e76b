/** The data of the stand-in: accounts with their records, in the form of the interface. */

import { createRandom, type Random } from './random.ts';

/** A record with all the fields that a read by id gives. */
export interface WireRecord {
  readonly id: number;
  [field: string]: unknown;
}

/** A record with the id of its owner. */
export interface OwnedRecord extends WireRecord {
  ownerId: number;
}

export interface Template extends OwnedRecord {
  name: string;
  Segment: WireRecord[];
}

export interface DttSession extends WireRecord {
  TrainerSegment: WireRecord[];
}

export interface LockSession extends OwnedRecord {
  duration: number;
  startDate: string;
  endDate: string | null;
  lockState: string;
  isActive: boolean;
  LockSegment: WireRecord[];
}

/** How many records an account has of the kinds that are many. */
interface Size {
  readonly templates: number;
  readonly sessions: number;
  readonly segmentsOfSession: number;
}

const smallSize: Size = { templates: 3, sessions: 12, segmentsOfSession: 3 };

export interface AccountOptions {
  readonly id: number;
  readonly username: string;
  readonly tokens: readonly string[];
  /** Is a part of every text of its records; by default the username. */
  readonly marker?: string;
  readonly size?: Partial<Size>;
  /** Whether a lock is under way in the beginning. */
  readonly locked?: boolean;
}

export interface Account {
  readonly id: number;
  readonly user: WireRecord;
  scheduleType: string;
  activeTemplateId: number | null;
  readonly dttDevices: Map<number, OwnedRecord>;
  /** Ids of templates: its own, and those of others that it has imported. */
  readonly ownTemplates: Set<number>;
  readonly imports: Set<number>;
  readonly sessions: Map<number, DttSession>;
  readonly lkbxDevices: Map<number, OwnedRecord>;
  readonly lockTemplates: Map<number, OwnedRecord>;
  readonly lockSessions: Map<number, LockSession>;
  readonly ossmDevices: Map<number, OwnedRecord>;
}

export interface World {
  readonly accounts: Map<number, Account>;
  readonly templates: Map<number, Template>;
  /** The templates of lock sessions, which the service shows of the active one alone. */
  readonly lockTemplateOf: Map<number, number | null>;
  /** Gives a new id. Each kind counts separately. */
  nextId(kind: string): number;
  now(): Date;
}

const hour = 3_600_000;

/** The generated records end at this time. */
const present = Date.UTC(2026, 8, 1, 12);

/** An instant in the form of the interface. */
export const instant = (time: number) => new Date(time).toISOString();

export function createWorld(options: readonly AccountOptions[], now: () => Date): World {
  const last = new Map<string, number>();
  const world: World = {
    accounts: new Map(),
    templates: new Map(),
    lockTemplateOf: new Map(),
    now,
    nextId(kind) {
      const id = (last.get(kind) ?? 0) + 1;
      last.set(kind, id);
      return id;
    },
  };
  for (const account of options) world.accounts.set(account.id, createAccount(world, account));
  const all = [...world.accounts.values()];
  for (const [index, { imports }] of all.entries()) {
    // Each has imported a template of the next.
    const next = all[(index + 1) % all.length];
    const [template] = next?.ownTemplates ?? [];
    if (all.length > 1 && template !== undefined) imports.add(template);
  }
  return world;
}

function createAccount(world: World, options: AccountOptions): Account {
  const { id } = options;
  const size = { ...smallSize, ...options.size };
  const random = createRandom(id);
  const account: Account = {
    id,
    user: userOf(options, size, random),
    scheduleType: 'auto',
    activeTemplateId: null,
    dttDevices: new Map(),
    ownTemplates: new Set(),
    imports: new Set(),
    sessions: new Map(),
    lkbxDevices: new Map(),
    lockTemplates: new Map(),
    lockSessions: new Map(),
    ossmDevices: new Map(),
  };
  const maker: Maker = { world, account, random, marker: options.marker ?? options.username };
  addDevices(maker);
  times(size.templates, () => addTemplate(maker, 3));
  times(size.sessions, (index) =>
    addDttSession(maker, present - (size.sessions - index) * hour, size.segmentsOfSession),
  );
  times(2, () => addLockTemplate(maker));
  times(3, (index) => addLockSession(maker, index, 3, options.locked));
  account.activeTemplateId = [...account.ownTemplates][0] ?? null;
  return account;
}

/** What is needed to generate a record. */
interface Maker {
  readonly world: World;
  readonly account: Account;
  readonly random: Random;
  readonly marker: string;
}

const times = (count: number, make: (index: number) => void) => {
  for (let index = 0; index < count; index++) make(index);
};

const userOf = (options: AccountOptions, size: Size, random: Random): WireRecord => {
  const { id, username, marker = username } = options;
  return {
    id,
    username,
    accountType: 'user',
    subscriptionTier: 'ultra',
    league: 1 + random.below(5),
    rank: 1 + random.below(1000),
    totalPoints: random.below(100_000),
    matchPoints: random.below(1000),
    profileImage: `https://example.com/${marker}.jpg`,
    profileDescription: `About ${marker}`,
    profileTitle: `Title of ${marker}`,
    dttTotalReps: random.below(10_000),
    dttTotalSessions: size.sessions,
  };
};

/** A MAC address that no other device has. */
const macOf = (kind: number, id: number) =>
  [0x02, kind, ...[24, 16, 8, 0].map((shift) => (id >>> shift) & 0xff)]
    .map((byte) => byte.toString(16).padStart(2, '0').toUpperCase())
    .join(':');

type More = (id: number) => object;

/** Adds a device with what each kind has, and these fields. */
function addDevice({ world, account, marker }: Maker, kind: 'dtt' | 'lkbx' | 'ossm', more: More): void {
  const id = world.nextId(kind);
  account[`${kind}Devices`].set(id, {
    id,
    bubbleId: `${kind}-${marker}-${id}`,
    ownerId: account.id,
    macAddress: macOf({ dtt: 1, lkbx: 2, ossm: 3 }[kind], id),
    lastVisited: instant(present - id * hour),
    ...more(id),
  });
}

function addDevices(maker: Maker): void {
  const { random, marker } = maker;
  const lastLog = (id: number) => ({ lastLogAt: instant(present - id * hour - 60_000) });
  const dtt: More = (id) => ({
    ...lastLog(id),
    serialNumber: `serial-${marker}-${id}`,
    softwareVersion: `2.1.${random.below(10)}-${marker}`,
    createdDate: instant(present - (1000 + id) * hour),
    apiHits: random.below(10_000),
  });
  times(2, () => addDevice(maker, 'dtt', dtt));
  addDevice(maker, 'lkbx', (id) => ({ locked: false, hueShift: random.below(360), ...lastLog(id) }));
  const pairing = { pairingCode: `code-${marker}`, pairingExpires: instant(present + hour) };
  addDevice(maker, 'ossm', () => ({ chip: `ESP32-${marker}`, ...pairing, OSSMFirmwareId: 5 }));
}

/** The kinds of segments of templates in the service's documentation. */
const segmentTypes = ['repetition', 'endurance', 'freeform', 'bounce'] as const;

function addTemplate({ world, account, random, marker }: Maker, segments: number): void {
  const id = world.nextId('template');
  account.ownTemplates.add(id);
  world.templates.set(id, {
    id,
    bubbleId: `template-${marker}-${id}`,
    ownerId: account.id,
    name: `Program ${id} of ${marker}`,
    description: `What ${marker} does`,
    tagline: `By ${marker}`.slice(0, 25),
    message: `Well done, ${marker}`.slice(0, 50),
    isPublic: random.next() < 0.5,
    handsFreeMode: random.next() < 0.5,
    targetDepth: 10 + random.below(90),
    targetWindow: 1 + random.below(20),
    toyId: null,
    createdDate: instant(present - 900 * hour + id * hour),
    updatedAt: instant(present - 800 * hour + id * hour),
    Segment: Array.from({ length: segments }, () => ({
      id: world.nextId('templateSegment'),
      type: random.pick(segmentTypes),
      duration: 30 + random.below(300),
      repeat: 1 + random.below(5),
    })),
  });
}

function addDttSession(maker: Maker, createdAt: number, segments: number): DttSession {
  const { world, account, random, marker } = maker;
  const id = world.nextId('session');
  const devices = [...account.dttDevices.keys()];
  const templates = [...account.ownTemplates];
  const session: DttSession = {
    id,
    bubble_id: `session-${marker}-${id}`,
    name: random.next() < 0.1 ? null : `Session ${id} of ${marker}`,
    passed: random.pick([true, false, null]),
    created_at: instant(createdAt),
    trainer_id: devices[random.below(devices.length)] ?? 1,
    settings_id: random.next() < 0.1 ? null : (templates[random.below(templates.length)] ?? null),
    TrainerSegment: Array.from({ length: segments }, (_, order) => trainerSegment(maker, order, createdAt)),
  };
  account.sessions.set(id, session);
  return session;
}

const trainerSegment = ({ world, random }: Maker, order: number, time: number): WireRecord => ({
  id: world.nextId('trainerSegment'),
  type: random.pick(segmentTypes),
  passed: random.pick([true, false, null]),
  percentGrade: random.below(1001) / 10,
  points: random.below(500),
  durationMeasured: random.below(600),
  durationTarget: random.below(600),
  repsMeasured: random.below(100),
  repsTarget: random.below(100),
  speedMeasured: random.below(1000) / 8,
  speedTarget: random.below(1000) / 8,
  targetDepth: random.below(100),
  targetWindow: random.below(20),
  longestDeepthroat: random.below(60_000),
  strokeLength: random.below(1000) / 8,
  distanceTravelled: random.below(1000) / 8,
  order,
  createdAt: instant(time + order * 60_000),
});

function addLockTemplate({ world, account, random, marker }: Maker): void {
  const id = world.nextId('lockTemplate');
  account.lockTemplates.set(id, {
    id,
    ownerId: account.id,
    name: `Lock ${id} of ${marker}`,
    duration: 3600 * (1 + random.below(48)),
    isRandomDuration: random.next() < 0.5,
    isBreakEnabled: random.next() < 0.5,
    breakRegularity: 60 * (1 + random.below(60)),
    isEmergencyUnlockEnabled: random.next() < 0.5,
    createdAt: instant(present - 700 * hour + id * hour),
  });
}

function addLockSession(maker: Maker, index: number, count: number, locked = false): void {
  const { world, account, random, marker } = maker;
  const id = world.nextId('lockSession');
  const isActive = locked && index === count - 1;
  const start = present - (count - index) * 24 * hour;
  const duration = 3600 * (1 + random.below(20));
  const [templateId = null] = account.lockTemplates.keys();
  account.lockSessions.set(id, {
    id,
    bubbleId: `lock-${marker}-${id}`,
    publicId: `public-${marker}-${id}`,
    ownerId: account.id,
    name: `Lock of ${marker}`,
    lockState: isActive ? 'locked' : 'completed',
    duration,
    startDate: instant(start),
    endDate: instant(start + duration * 1000),
    createdAt: instant(start),
    isActive,
    LockSegment: [
      lockSegment(world, 'start', start, true),
      ...(isActive ? [] : [lockSegment(world, 'unlocked', start + duration * 1000, false)]),
    ],
  });
  world.lockTemplateOf.set(id, templateId);
  if (isActive) for (const device of account.lkbxDevices.values()) device.locked = true;
}

const lockSegment = (world: World, type: string, time: number, isLocked: boolean): WireRecord => ({
  id: world.nextId('lockSegment'),
  type,
  createdAt: instant(time),
  isLocked,
});

/** Adds a session that is newer than all others, as if a device had uploaded it. */
export function addNewSession(world: World, account: Account, marker: string): DttSession {
  const newest = [...account.sessions.values()].reduce(
    (latest, session) => Math.max(latest, Date.parse(String(session.created_at))),
    present,
  );
  const random = createRandom(account.sessions.size);
  return addDttSession({ world, account, random, marker }, newest + hour, 3);
}
