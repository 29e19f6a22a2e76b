/** The writes of the service's public documentation: activating and changing a template, and locks. */

import { activeLock, failure, inaccessible, mayAccess, type Reply, success, templateOf } from './reads.ts';
import {
  type Account,
  instant,
  type LockSession,
  lockSegment,
  setLocked,
  type Template,
  type World,
} from './world.ts';

export interface WriteRequest {
  readonly world: World;
  readonly account: Account;
  readonly method: string;
  readonly path: string;
  readonly parameters: URLSearchParams;
  /** The JSON of the body, or undefined for what is none. */
  readonly body: unknown;
}

type Fields = Readonly<Record<string, unknown>>;

const fieldsOf = (body: unknown): Fields | undefined =>
  typeof body === 'object' && body !== null && !Array.isArray(body) ? { ...body } : undefined;

/** The response to a write; undefined for an unknown one. */
export function write(request: WriteRequest): Reply | undefined {
  const { method, path } = request;
  const [, id] = /^\/dtt\/templates\/([^/]+)$/.exec(path) ?? [];
  if (id !== undefined && method === 'POST') return activate(request, Number(id));
  if (id !== undefined && method === 'PATCH') return changeTemplate(request, Number(id));
  if (path !== '/lkbx/session/current') return undefined;
  if (method === 'POST') return lockOrUnlock(request);
  return method === 'PATCH' ? changeLock(request) : undefined;
}

function activate({ world, account, body }: WriteRequest, id: number): Reply {
  if (fieldsOf(body)?.isActive !== true) return failure(400, 'Request body must include { isActive: true }');
  const template = account.ownTemplates.has(id) ? world.templates.get(id) : undefined;
  if (!template) return failure(404, 'Template not found or not owned by user');
  account.activeTemplateId = id;
  const scheduleTypeChanged = account.scheduleType !== 'single';
  account.scheduleType = 'single';
  return success({
    id,
    name: template.name,
    isActive: true,
    scheduleTypeChanged,
    Segment: template.Segment.map(({ id: segmentId, type, duration }) => ({ id: segmentId, type, duration })),
  });
}

/** The fields of a template that a client may change. */
const writable = new Set(
  'name description tagline message targetDepth targetWindow toyId handsFreeMode isPublic Segment'.split(' '),
);

function changeTemplate(request: WriteRequest, id: number): Reply {
  const { world, account } = request;
  const fields = fieldsOf(request.body);
  if (!fields || Object.keys(fields).length === 0) return failure(400, 'Invalid or empty request body');
  const template = account.ownTemplates.has(id) ? world.templates.get(id) : undefined;
  if (!template) return failure(404, 'Template not found or not owned by user');
  if (typeof fields.name === 'string' && fields.name.trim().length < 4) {
    const fieldErrors = [{ field: 'name', message: 'String must contain at least 4 character(s)' }];
    return failure(422, 'Validation failed', { fieldErrors });
  }
  assign(world, template, fields);
  return success(templateOf(request, id));
}

function assign(world: World, template: Template, fields: Fields): void {
  for (const [name, value] of Object.entries(fields)) if (writable.has(name)) template[name] = value;
  if (fields.message === null || fields.message === '') template.message = 'Good Work!';
  if (fields.toyId === 0) template.toyId = null;
  if (Array.isArray(fields.Segment))
    template.Segment = fields.Segment.map((segment: Fields, order) => ({
      id: world.nextId('templateSegment'),
      type: segment.type,
      duration: segment.duration,
      speed: segment.speed,
      repeat: segment.repeat ?? 1,
      order,
      passFailEnabled: segment.passFailEnabled ?? false,
      passGradeThreshold: segment.passGradeThreshold ?? 0,
      failureText: segment.failureText ?? null,
    }));
  template.updatedAt = world.now().toISOString();
}

/** The account whose lock the request is about: the viewer's, unless the body or the query names another. */
function targetOf({ world, account, parameters, body }: WriteRequest): Account | Reply {
  const id = Number(fieldsOf(body)?.targetUserId ?? parameters.get('targetUserId') ?? account.id);
  const target = mayAccess(account, id) ? world.accounts.get(id) : undefined;
  return target ?? inaccessible([id], 'targetUserId');
}

function lockOrUnlock(request: WriteRequest): Reply {
  const fields = fieldsOf(request.body);
  if (fields?.action !== 'lock' && fields?.action !== 'unlock')
    return failure(400, 'action must be "lock" or "unlock"');
  const target = targetOf(request);
  if ('status' in target) return target;
  return fields.action === 'lock' ? lock(request, fields, target) : unlock(request, target);
}

function lock({ world, account }: WriteRequest, fields: Fields, target: Account): Reply {
  const keyholders = Array.isArray(fields.keyholderIds) ? fields.keyholderIds.map(Number) : [];
  const foreign = keyholders.filter((id) => !mayAccess(account, id));
  if (foreign.length > 0) return inaccessible(foreign, 'keyholderIds');
  if (activeLock(target)) return failure(400, 'You already have an active lock.');
  const templateId = fields.lockSettingsId === undefined ? null : Number(fields.lockSettingsId);
  const template =
    templateId === null
      ? undefined
      : (target.lockTemplates.get(templateId) ?? account.lockTemplates.get(templateId));
  if (templateId !== null && !template) return failure(404, 'Lock template not found');
  const id = world.nextId('lockSession');
  const start = world.now().getTime();
  const duration = Number(template?.duration ?? 3600);
  target.lockSessions.set(id, {
    id,
    bubbleId: `lock-${target.id}-${id}`,
    publicId: `public-${target.id}-${id}`,
    ownerId: target.id,
    name: String(template?.name ?? 'Lock'),
    lockState: 'locked',
    duration,
    startDate: instant(start),
    endDate: instant(start + duration * 1000),
    createdAt: instant(start),
    isActive: true,
    LockSegment: [lockSegment(world, 'start', start, true)],
  });
  world.locks.set(id, {
    templateId,
    keyholders: new Set(keyholders.length > 0 ? keyholders : [account.id]),
    isTestLock: fields.isTestLock === true,
  });
  setLocked(target, true);
  return success({ lockSessionId: id });
}

/** The active lock session, if the account may change it. */
function changeable(request: WriteRequest, target: Account, what: string): LockSession | Reply {
  const { world, account } = request;
  const session = activeLock(target);
  if (!session) return failure(404, 'No active lock session');
  const details = world.locks.get(session.id);
  const may = details?.keyholders.has(account.id) || (details?.isTestLock && target === account);
  return may ? session : failure(403, `Only keyholders or test locks can ${what} the active session`);
}

function unlock(request: WriteRequest, target: Account): Reply {
  const session = changeable(request, target, 'unlock');
  if (!('lockState' in session)) return session;
  const now = request.world.now().getTime();
  session.lockState = 'completed';
  session.isActive = false;
  session.endDate = instant(now);
  session.LockSegment.push(lockSegment(request.world, 'unlocked', now, false));
  setLocked(target, false);
  return success({ message: 'Lock session completed' });
}

function changeLock(request: WriteRequest): Reply {
  const duration = fieldsOf(request.body)?.duration;
  if (typeof duration !== 'number' || duration <= 0)
    return failure(400, 'duration must be a positive number');
  const target = targetOf(request);
  if ('status' in target) return target;
  const session = changeable(request, target, 'modify');
  if (!('lockState' in session)) return session;
  session.duration = duration;
  session.endDate = instant(Date.parse(session.startDate) + duration * 1000);
  const { id, endDate, lockState, isActive } = session;
  return success({ id, duration, endDate, lockState, isActive });
}
