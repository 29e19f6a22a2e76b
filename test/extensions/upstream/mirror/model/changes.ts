/**
 * Random changes of what the accounts of a stand-in have. Each change has a number, the version, and writes it into the name
 * of the record and into its details, so that a reader can tell which version a response shows.
 */

import type { Random } from '../../support/standIn/random.ts';
import type { StandIn } from '../../support/standIn/standIn.ts';
import {
  type Account,
  addNewSession,
  type DttSession,
  instant,
  type OwnedRecord,
  type World,
} from '../../support/standIn/world.ts';

/** A part of the texts of an account's records: no response to another account may contain it. */
export const markerOf = (accountId: number) => `owner-${accountId}-`;

/** When the upstream has a version: later than every time that the stand-in generates, and later for a later version. */
export const timeOf = (version: number) => instant(Date.UTC(2027, 0, 1) + version * 1_000);

interface Change {
  readonly world: World;
  readonly random: Random;
  readonly account: Account;
  /** Another account, or the same one. */
  readonly other: Account;
  readonly version: number;
}

function pickFrom<Value>(random: Random, values: Iterable<Value>): Value | undefined {
  const all = [...values];
  return all[random.below(all.length)];
}

export const versionedName = (accountId: number, version: number) =>
  `Record of ${markerOf(accountId)} v${version}`;

function rewriteSession(session: DttSession, accountId: number, version: number): void {
  session.name = versionedName(accountId, version);
  for (const segment of session.TrainerSegment) {
    segment.repsTarget = version;
    segment.points = version;
  }
}

const addSession = ({ world, account, version }: Change) =>
  rewriteSession(addNewSession(world, account, markerOf(account.id)), account.id, version);

function changeSession({ random, account, version }: Change): void {
  const session = pickFrom(random, account.sessions.values());
  if (session) rewriteSession(session, account.id, version);
}

/** The newest session gets a grade that may differ from the one before by as little as rounding does. */
function regradeSession({ random, account }: Change): void {
  const segment = [...account.sessions.values()].at(-1)?.TrainerSegment[0];
  if (segment) segment.percentGrade = random.pick([87.4, 87.5, 87.6, 88]);
}

function deleteSession({ random, account }: Change): void {
  const id = pickFrom(random, account.sessions.keys());
  if (id !== undefined) account.sessions.delete(id);
}

function addTemplate({ world, account, version }: Change): void {
  const id = world.nextId('template');
  account.ownTemplates.add(id);
  world.templates.set(id, {
    id,
    bubbleId: `template-${markerOf(account.id)}-${id}`,
    ownerId: account.id,
    name: versionedName(account.id, version),
    description: null,
    tagline: null,
    message: null,
    isPublic: true,
    handsFreeMode: false,
    targetDepth: 5,
    targetWindow: 5,
    toyId: null,
    createdDate: timeOf(version),
    updatedAt: timeOf(version),
    Segment: [{ id: world.nextId('templateSegment'), type: 'bounce', duration: version, repeat: 1 }],
  });
}

function changeTemplate({ world, random, account, version }: Change): void {
  const template = world.templates.get(pickFrom(random, account.ownTemplates) ?? 0);
  if (!template) return;
  template.name = versionedName(account.id, version);
  template.updatedAt = timeOf(version);
  for (const segment of template.Segment) segment.duration = version;
}

function deleteTemplate({ world, random, account }: Change): void {
  const id = pickFrom(random, account.ownTemplates) ?? 0;
  account.ownTemplates.delete(id);
  world.templates.delete(id);
  for (const each of world.accounts.values()) removeImport(each, id);
}

function removeImport(account: Account, id: number): void {
  account.imports.delete(id);
  if (account.activeTemplateId === id) account.activeTemplateId = null;
}

function importTemplate({ world, random, account }: Change): void {
  const ofOthers = [...world.templates.values()].filter(({ ownerId }) => ownerId !== account.id);
  const template = pickFrom(random, ofOthers);
  if (template) account.imports.add(template.id);
}

/** The owner of a template gives it to another account, and has it as an import from then on. */
function giveTemplate({ world, random, account, other }: Change): void {
  const template = world.templates.get(pickFrom(random, account.ownTemplates) ?? 0);
  if (!template || other === account) return;
  account.ownTemplates.delete(template.id);
  account.imports.add(template.id);
  other.imports.delete(template.id);
  other.ownTemplates.add(template.id);
  template.ownerId = other.id;
}

function rewriteDevice(device: OwnedRecord | undefined, accountId: number, version: number): void {
  if (!device) return;
  device.softwareVersion = versionedName(accountId, version);
  device.lastVisited = timeOf(version);
}

function moveDevice({ random, account, other, version }: Change): void {
  const device = pickFrom(random, account.dttDevices.values());
  if (!device || other === account) return;
  account.dttDevices.delete(device.id);
  device.ownerId = other.id;
  other.dttDevices.set(device.id, device);
  rewriteDevice(device, other.id, version);
}

function changeLock({ random, account, version }: Change): void {
  const lock = pickFrom(random, account.lockSessions.values());
  if (lock) Object.assign(lock, { name: versionedName(account.id, version), duration: version });
}

function changeUser({ random, account, version }: Change): void {
  account.user.profileDescription = versionedName(account.id, version);
  account.user.rank = random.pick([version, null]);
}

function swapNames({ account, other }: Change): void {
  [account.user.username, other.user.username] = [other.user.username, account.user.username];
}

const changes: readonly [(change: Change) => void, ...((change: Change) => void)[]] = [
  addSession,
  changeSession,
  regradeSession,
  regradeSession,
  regradeSession,
  deleteSession,
  addTemplate,
  changeTemplate,
  deleteTemplate,
  importTemplate,
  ({ random, account }) => removeImport(account, pickFrom(random, account.imports) ?? 0),
  giveTemplate,
  ({ random, account }) => {
    account.activeTemplateId = pickFrom(random, [...account.ownTemplates, ...account.imports]) ?? null;
  },
  ({ random, account, version }) =>
    rewriteDevice(pickFrom(random, account.dttDevices.values()), account.id, version),
  moveDevice,
  changeLock,
  changeUser,
  swapNames,
];

/** Makes one random change of one random account. */
export function changeSomething(service: StandIn, random: Random, version: number): void {
  const { world } = service;
  const [account, other] = [
    pickFrom(random, world.accounts.values()),
    pickFrom(random, world.accounts.values()),
  ];
  if (account && other) random.pick(changes)({ world, random, account, other, version });
}
