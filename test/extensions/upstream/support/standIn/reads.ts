/** The reads of the interface. */

import type { Account, OwnedRecord, WireRecord, World } from './world.ts';

/** A response of the stand-in. A body of text is sent as it is, any other as JSON. */
export interface Reply {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export const success = (data: unknown): Reply => ({ status: 200, body: { ok: true, data } });

export const failure = (status: number, error: string, more: Record<string, unknown> = {}): Reply => ({
  status,
  body: { ok: false, error, ...more },
});

/** A request with a valid token. */
export interface Call {
  readonly world: World;
  readonly account: Account;
  readonly method: string;
  /** Below the base. */
  readonly path: string;
  readonly parameters: URLSearchParams;
  /** The JSON of the body, or undefined for what is none. */
  readonly body: unknown;
}

type Read = (request: Call, id: number) => Reply;

type Kind = 'dttDevices' | 'sessions' | 'lkbxDevices' | 'lockTemplates' | 'lockSessions' | 'ossmDevices';

/** All records of a kind that the account sees, newest first. */
const all = ({ account }: Call, kind: Kind) => newestFirst([...account[kind].values()]);

function newestFirst(records: WireRecord[]): WireRecord[] {
  return records.sort((a, b) => {
    const [timeA, timeB] = [timeOf(a), timeOf(b)];
    if (timeA === timeB) return b.id - a.id;
    return timeA < timeB ? 1 : -1;
  });
}

/** The timestamp that lists are sorted by; devices that were never seen come last. */
const timeOf = (record: WireRecord) =>
  String(
    record.lastVisited ??
      record.created_at ??
      record.startDate ??
      record.createdDate ??
      record.createdAt ??
      '',
  );

function templatesOf({ world, account }: Call): WireRecord[] {
  const records = [...account.ownTemplates, ...account.imports].flatMap((id) => {
    const template = world.templates.get(id);
    return template ? [{ ...template, isActive: id === account.activeTemplateId }] : [];
  });
  return newestFirst(records);
}

/** A template that the account sees, with `isActive`. */
export function templateOf({ world, account }: Call, id: number) {
  const template = world.templates.get(id);
  if (!template || !(account.ownTemplates.has(id) || account.imports.has(id))) return undefined;
  return { ...template, isActive: id === account.activeTemplateId };
}

const templateSummary = ({ Segment: _, ...summary }: WireRecord) => summary;

const sessionSummary = (session: WireRecord) => ({
  ...session,
  TrainerSegment: (session.TrainerSegment as WireRecord[]).map(
    ({ id, type, passed, percentGrade, points }) => ({ id, type, passed, percentGrade, points }),
  ),
});

const itself = (record: WireRecord): unknown => record;

/** A page of a list. Bad parameters are a 400 here; the service's behaviour is not documented. */
function page({ parameters }: Call, records: WireRecord[], shown = itself): Reply {
  const limit = Number(parameters.get('limit') ?? 50);
  const offset = Number(parameters.get('offset') ?? 0);
  if (!Number.isInteger(limit) || limit < 1 || limit > 100 || !Number.isInteger(offset) || offset < 0)
    return failure(400, 'Invalid pagination');
  return success({ data: records.slice(offset, offset + limit).map(shown), pagination: { limit, offset } });
}

const found = (record: WireRecord | undefined, what: string) =>
  record ? success(record) : failure(404, `${what} not found`);

const list =
  (kind: Kind, shown = itself): Read =>
  (request) =>
    page(request, all(request, kind), shown);

const item =
  (kind: Kind, what: string): Read =>
  ({ account }, id) =>
    found(account[kind].get(id), what);

export const activeLock = (account: Account) =>
  [...account.lockSessions.values()].find(({ isActive }) => isActive);

const activeLockTemplate: Read = ({ world, account }) => {
  const lock = activeLock(account);
  const id = lock && world.lockTemplateOf.get(lock.id);
  const template = id == null ? undefined : account.lockTemplates.get(id);
  // The service was seen to respond like this.
  if (!lock || !template) return { status: 200, body: { ok: true, data: null, message: 'no active lock' } };
  const { id: templateId, name, duration, isBreakEnabled } = template as OwnedRecord;
  return success({ id: templateId, name, duration, isBreakEnabled });
};

/** The reads by path; `{id}` stands for a number. */
const reads: Readonly<Record<string, Read>> = {
  '/users/me': ({ account }) => success(account.user),
  '/users/{id}': ({ account }, id) => found(id === account.id ? account.user : undefined, 'User'),
  '/dtt': list('dttDevices'),
  '/dtt/{id}': item('dttDevices', 'DTT device'),
  '/dtt/templates': (request) => page(request, templatesOf(request), templateSummary),
  '/dtt/templates/active': (request) =>
    success(templateOf(request, request.account.activeTemplateId ?? 0) ?? null),
  '/dtt/templates/{id}': (request, id) => found(templateOf(request, id), 'DTT template'),
  '/dtt/sessions': list('sessions', sessionSummary),
  '/dtt/sessions/latest': (request) => {
    const [latest] = all(request, 'sessions');
    return success(latest ? sessionSummary(latest) : null);
  },
  '/dtt/sessions/{id}': item('sessions', 'DTT session'),
  '/lkbx': list('lkbxDevices'),
  '/lkbx/{id}': item('lkbxDevices', 'LKBX device'),
  '/lkbx/templates': list('lockTemplates'),
  '/lkbx/templates/active': activeLockTemplate,
  '/lkbx/templates/{id}': item('lockTemplates', 'Lock template'),
  '/lkbx/sessions': list('lockSessions'),
  '/lkbx/sessions/latest': (request) => success(all(request, 'lockSessions')[0] ?? null),
  '/lkbx/session/current': ({ account }) => success(activeLock(account) ?? null),
  '/lkbx/sessions/{id}': item('lockSessions', 'Lock session'),
  '/ossm': list('ossmDevices'),
  '/ossm/{id}': item('ossmDevices', 'OSSM device'),
};

/** The response to a read; undefined for an unknown path. */
export function read(request: Call): Reply | undefined {
  const { path } = request;
  const exact = path.includes('{') ? undefined : reads[path];
  if (exact) return exact(request, 0);
  const [, parent = '', last = ''] = /^(.*)\/([^/]+)$/.exec(path) ?? [];
  const byId = reads[`${parent}/{id}`];
  if (!byId) return undefined;
  const id = Number(last);
  return /^\d+$/.test(last) && id >= 1 ? byId(request, id) : failure(400, 'Invalid ID');
}
