/** The writes of the service's public documentation: activating and changing a template, and changing a lock. */

import { activeLock, type Call, failure, type Reply, success, templateOf } from './reads.ts';
import { instant, type Template, type World } from './world.ts';

type Fields = Readonly<Record<string, unknown>>;

const fieldsOf = (body: unknown): Fields | undefined =>
  typeof body === 'object' && body !== null && !Array.isArray(body) ? { ...body } : undefined;

/** The response to a write; undefined for an unknown one. */
export function write(request: Call): Reply | undefined {
  const { method, path } = request;
  const [, id] = /^\/dtt\/templates\/([^/]+)$/.exec(path) ?? [];
  if (id !== undefined && method === 'POST') return activate(request, Number(id));
  if (id !== undefined && method === 'PATCH') return changeTemplate(request, Number(id));
  return path === '/lkbx/session/current' && method === 'PATCH' ? changeLock(request) : undefined;
}

function activate({ world, account, body }: Call, id: number): Reply {
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

function changeTemplate(request: Call, id: number): Reply {
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

function changeLock({ account, body }: Call): Reply {
  const duration = fieldsOf(body)?.duration;
  if (typeof duration !== 'number' || duration <= 0)
    return failure(400, 'duration must be a positive number');
  const session = activeLock(account);
  if (!session) return failure(404, 'No active lock session');
  session.duration = duration;
  session.endDate = instant(Date.parse(session.startDate) + duration * 1000);
  const { id, endDate, lockState, isActive } = session;
  return success({ id, duration, endDate, lockState, isActive });
}
