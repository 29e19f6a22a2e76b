/** The stand-in for the live service behaves as the interface and the service's documentation say. */

import { afterEach, describe, expect, it, vi } from 'vitest';
import examples from '../examples.json' with { type: 'json' };
import { createStandIn, type StandIn, type StandInOptions } from './standIn.ts';
import type { GivenRecords, LockSession, OwnedRecord, Template } from './world.ts';

let standIn: StandIn;
afterEach(async () => {
  vi.useRealTimers();
  await standIn?.stop();
});

const alice = { id: 42, username: 'alice', tokens: ['token-of-alice'] };
const bob = { id: 43, username: 'bob', tokens: ['token-of-bob'] };

async function open(options: Partial<StandInOptions> = {}): Promise<void> {
  standIn = await createStandIn({ accounts: [alice, bob], rate: Number.POSITIVE_INFINITY, ...options });
}

interface ParsedResponse {
  status: number;
  headers: Headers;
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test names the shape of the response where it reads it.
  body: any;
}

async function ask(
  path: string,
  { token = 'token-of-alice', method = 'GET', body = undefined as unknown } = {},
) {
  const response = await fetch(standIn.base + path, {
    method,
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  const parsed: ParsedResponse = {
    status: response.status,
    headers: response.headers,
    text,
    body: undefined,
  };
  try {
    parsed.body = JSON.parse(text);
  } catch {
    // With a fault, the body may not be JSON.
  }
  return parsed;
}

const list = async (path: string) => (await ask(path)).body.data.data;

/** The records of the examples, which leave out fields that no test reads. */
const documented: GivenRecords = {
  user: examples['GET /users/42'],
  dttDevices: examples['GET /dtt'],
  templates: [examples['GET /dtt/templates/1']] satisfies Template[],
  activeTemplateId: 1,
  lkbxDevices: [examples['GET /lkbx/1']] satisfies OwnedRecord[],
  lockTemplates: [examples['GET /lkbx/templates/1']] satisfies OwnedRecord[],
  lockSessions: examples['GET /lkbx/sessions'].map((session) => ({
    ...session,
    ...examples['GET /lkbx/session/current'],
    endDate: null,
    LockSegment: session.LockSegment.map((segment) => ({ ...segment, isLocked: true })),
  })) satisfies LockSession[],
  templateOfLock: { 7: 1 },
  ossmDevices: [examples['GET /ossm/1']] satisfies OwnedRecord[],
};
const nothing = {
  dttDevices: 0,
  templates: 0,
  imports: 0,
  sessions: 0,
  lkbxDevices: 0,
  lockTemplates: 0,
  lockSessions: 0,
  ossmDevices: 0,
};

describe('the stand-in', () => {
  const { about: _, ...documentedResponses } = examples;
  it.each(Object.entries(documentedResponses))(
    'responds to %s as the public reference does',
    async (route, example) => {
      await open({ accounts: [{ ...alice, size: nothing, records: documented }] });
      const { status, body } = await ask(route.replace('GET ', ''));
      expect(status).toBe(200);
      expect(body.ok).toBe(true);
      if (Array.isArray(example)) expect(body.data.pagination).toEqual({ limit: 50, offset: 0 });
      expect(Array.isArray(example) ? body.data.data : body.data).toMatchObject(example);
    },
  );

  it.each([
    [
      '/users/me',
      'id username accountType subscriptionTier league rank totalPoints matchPoints profileImage profileDescription profileTitle dttTotalReps dttTotalSessions',
    ],
    [
      '/dtt/1',
      'id bubbleId ownerId macAddress serialNumber softwareVersion lastVisited lastLogAt createdDate apiHits',
    ],
    [
      '/dtt/templates/1',
      'id bubbleId ownerId name description tagline message isPublic isActive handsFreeMode targetDepth targetWindow toyId createdDate updatedAt Segment',
    ],
    ['/dtt/sessions/1', 'id bubble_id name passed created_at trainer_id settings_id TrainerSegment'],
    ['/lkbx/1', 'id bubbleId macAddress ownerId locked hueShift lastVisited lastLogAt'],
    [
      '/lkbx/templates/1',
      'id ownerId name duration isRandomDuration isBreakEnabled breakRegularity isEmergencyUnlockEnabled createdAt',
    ],
    [
      '/lkbx/sessions/1',
      'id bubbleId publicId ownerId name lockState duration startDate endDate createdAt isActive LockSegment',
    ],
    ['/ossm/1', 'id bubbleId macAddress chip ownerId pairingCode pairingExpires lastVisited OSSMFirmwareId'],
  ])('returns at %s exactly the fields of the interface', async (path, fields) => {
    await open();
    expect(Object.keys((await ask(path)).body.data).sort()).toEqual(fields.split(' ').sort());
  });

  it('returns fewer fields in lists than in the record by its id', async () => {
    await open();
    const [session] = await list('/dtt/sessions');
    expect(Object.keys(session.TrainerSegment[0])).toEqual([
      'id',
      'type',
      'passed',
      'percentGrade',
      'points',
    ]);
    const { data } = (await ask(`/dtt/sessions/${session.id}`)).body;
    expect(Object.keys(data.TrainerSegment[0])).toHaveLength(18);
    expect((await list('/dtt/templates'))[0]).not.toHaveProperty('Segment');
    expect((await ask('/dtt/sessions/latest')).body.data).toEqual(session);
  });

  it.each([
    ['/dtt/0', 400, 'Invalid ID'],
    ['/dtt/x', 400, 'Invalid ID'],
    ['/dtt/999', 404, 'DTT device not found'],
    ['/dtt/templates/999', 404, 'DTT template not found'],
    ['/dtt/sessions/999', 404, 'DTT session not found'],
    ['/users/43', 404, 'User not found'],
    ['/lkbx/999', 404, 'LKBX device not found'],
    ['/lkbx/templates/999', 404, 'Lock template not found'],
    ['/lkbx/sessions/999', 404, 'Lock session not found'],
    ['/ossm/999', 404, 'OSSM device not found'],
    ['/nowhere', 404, 'Not found'],
    ['/dtt?limit=101', 400, 'Invalid pagination'],
    ['/lkbx/session/current?targetUserId=43', 403, 'targetUserId contains inaccessible user IDs: 43'],
  ])('responds to %s with %i', async (path, status, error) => {
    await open();
    expect(await ask(path)).toMatchObject({ status, body: { ok: false, error } });
  });

  it('returns to each account its own records and the templates that it has imported', async () => {
    await open();
    const hers = await list('/dtt/templates');
    expect(hers.map(({ ownerId }: OwnedRecord) => ownerId).sort()).toEqual([42, 42, 42, 43]);
    expect(hers.filter(({ isActive }: { isActive: boolean }) => isActive)).toHaveLength(1);
    const [device] = await list('/dtt');
    expect((await ask(`/dtt/${device.id}`, { token: 'token-of-bob' })).status).toBe(404);
    // Bob's second template, which Alice has not imported.
    expect((await ask('/dtt/templates/4')).body.data.ownerId).toBe(43);
    expect((await ask('/dtt/templates/5')).status).toBe(404);
    const text = (await ask('/dtt/sessions', { token: 'token-of-bob' })).text;
    expect(text).toContain('bob');
    expect(text).not.toContain('alice');
  });

  it('responds with 401 to an unknown or revoked token, and accepts a new one', async () => {
    await open();
    expect(await ask('/dtt', { token: 'x' })).toMatchObject({ status: 401, body: { error: 'Unauthorized' } });
    standIn.revoke('token-of-alice');
    expect((await ask('/dtt')).status).toBe(401);
    standIn.addToken('token-of-alice', 43);
    expect((await ask('/users/me')).body.data.username).toBe('bob');
    expect([...standIn.tokensSeen]).toEqual(['x', 'token-of-alice']);
  });

  it('limits the requests of an account in any minute to its rate', async () => {
    await open({ rate: 3 });
    vi.useFakeTimers({ toFake: ['Date'], now: 1_000_000 });
    for (const wait of [0, 10_000, 10_000]) {
      vi.setSystemTime(Date.now() + wait);
      expect((await ask('/dtt')).status).toBe(200);
    }
    const rejected = await ask('/dtt');
    expect(rejected).toMatchObject({ status: 429, body: { ok: false, error: 'Rate limit exceeded' } });
    expect(rejected.headers.get('Retry-After')).toBe('40');
    expect((await ask('/dtt', { token: 'token-of-bob' })).status).toBe(200);
    vi.setSystemTime(Date.now() + 40_000);
    expect((await ask('/dtt')).status).toBe(200);
    expect((await ask('/dtt')).headers.get('Retry-After')).toBe('10');
    expect(standIn.count({ account: 42 })).toBe(6);
    expect(standIn.count({ account: 42, path: '/dtt', status: 429 })).toBe(2);
  });
});

describe('a write', () => {
  const write = (method: string, path: string, body: unknown) => ask(path, { method, body });

  it('activates a template of the account, and deactivates the others', async () => {
    await open();
    expect((await write('POST', '/dtt/templates/2', { isActive: true })).body.data).toMatchObject({
      id: 2,
      isActive: true,
      scheduleTypeChanged: true,
    });
    expect((await ask('/dtt/templates/active')).body.data).toMatchObject({ id: 2, isActive: true });
    expect((await write('POST', '/dtt/templates/2', { isActive: true })).body.data.scheduleTypeChanged).toBe(
      false,
    );
    expect((await write('POST', '/dtt/templates/2', {})).status).toBe(400);
    expect((await write('POST', '/dtt/templates/4', { isActive: true })).status).toBe(404);
  });

  it.each([
    [400, 'no JSON', '{'],
    [400, 'no fields', {}],
    [422, 'a name that is too short', { name: 'abc' }],
    [403, 'what takes another tier', { handsFreeMode: true }],
  ])('responds with %i to %s for a template', async (status, _name, body) => {
    await open({ accounts: [{ ...alice, subscriptionTier: 'free' }, bob] });
    expect((await write('PATCH', '/dtt/templates/1', body)).status).toBe(status);
  });

  it('locks, changes and unlocks', async () => {
    await open({ now: () => new Date('2027-01-01T00:00:00Z') });
    expect((await ask('/lkbx/session/current')).body).toEqual({ ok: true, data: null });
    expect((await ask('/lkbx/templates/active')).body).toEqual({
      ok: true,
      data: null,
      message: 'no active lock',
    });
    const current = '/lkbx/session/current';
    const locked = await write('POST', current, { action: 'lock', lockSettingsId: 1 });
    expect(locked).toMatchObject({ status: 200, body: { data: { lockSessionId: expect.any(Number) } } });
    expect((await ask('/lkbx')).body.data.data[0].locked).toBe(true);
    expect((await ask('/lkbx/templates/active')).body.data.id).toBe(1);
    expect(await write('POST', current, { action: 'lock' })).toMatchObject({
      status: 400,
      body: { error: 'You already have an active lock.' },
    });
    expect((await write('PATCH', current, { duration: 60 })).body.data).toMatchObject({
      duration: 60,
      endDate: '2027-01-01T00:01:00.000Z',
      isActive: true,
    });
    expect((await write('POST', current, { action: 'unlock' })).body.data.message).toBe(
      'Lock session completed',
    );
    expect((await ask(current)).body.data).toBeNull();
    expect((await ask('/lkbx/sessions/latest')).body.data).toMatchObject({
      lockState: 'completed',
      isActive: false,
    });
  });
});
