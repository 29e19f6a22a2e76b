/** How the records of an upstream are parsed: the rows that they become, and the issues of invalid ones. */

import { describe, expect, it } from 'vitest';
import { user } from '../../../../src/extensions/upstream/mirror/account.ts';
import { kinds, parseRecord } from '../../../../src/extensions/upstream/mirror/kinds.ts';
import type { Kind } from '../../../../src/extensions/upstream/mirror/rows.ts';

const account = 7;
type Name = keyof typeof kinds;

const time = '2026-02-17T12:00:00.000Z';
const other = '2026-01-01T00:00:00.000Z';

/** The fields that most kinds have. */
const named = { id: 1, bubbleId: 'one', ownerId: account };
const macAddress = '02:00:00:00:00:01';

/** A record of each kind with all of its fields: those that it needs, and the optional ones. */
const records: Record<Name, Record<'needed' | 'optional', Record<string, unknown>>> = {
  dttDevices: {
    needed: named,
    optional: {
      macAddress,
      serialNumber: '1001',
      softwareVersion: '2.1',
      lastVisited: time,
      lastLogAt: other,
      createdDate: time,
      apiHits: 5,
    },
  },
  dttTemplates: {
    needed: {
      ...named,
      ownerId: 9,
      name: 'Name',
      isPublic: true,
      isActive: true,
      handsFreeMode: false,
      targetDepth: 50.5,
      targetWindow: 0.5,
      createdDate: time,
      updatedAt: other,
      Segment: [],
    },
    optional: { description: 'Description', tagline: 'Tagline', message: 'Message', toyId: 'toy' },
  },
  lkbxDevices: {
    needed: { ...named, locked: false, hueShift: 0.5 },
    optional: { macAddress, lastVisited: time, lastLogAt: other },
  },
  lockTemplates: {
    needed: {
      id: 1,
      ownerId: account,
      name: 'Name',
      duration: 60,
      isRandomDuration: false,
      isBreakEnabled: true,
      isEmergencyUnlockEnabled: false,
      createdAt: time,
    },
    optional: { breakRegularity: 10 },
  },
  lockSessions: {
    needed: {
      ...named,
      publicId: 'public',
      lockState: 'locked',
      duration: 60,
      startDate: time,
      isActive: false,
      LockSegment: [],
    },
    optional: { name: 'Name', endDate: other, createdAt: other },
  },
  ossmDevices: {
    needed: { ...named, chip: 'ESP32' },
    optional: { macAddress, pairingCode: 'ABC', pairingExpires: time, lastVisited: other, OSSMFirmwareId: 5 },
  },
  dttSessions: {
    needed: { id: 1, bubble_id: 'one', created_at: time, trainer_id: 2, TrainerSegment: [] },
    optional: { name: 'Name', passed: false, settings_id: 3 },
  },
};

/** How the whole records are stored, where that is not a row with the same fields. */
const changed: Partial<Record<Name, { row: object; children: []; isActive?: true }>> = {
  dttTemplates: {
    row: { ownerId: null, foreignOwnerId: 9, detailsPending: false, isActive: undefined, Segment: undefined },
    ...{ children: [], isActive: true },
  },
  lockSessions: { row: { LockSegment: undefined }, children: [] },
  dttSessions: {
    row: {
      ...{ bubble_id: undefined, created_at: undefined, trainer_id: undefined, settings_id: undefined },
      ...{ TrainerSegment: undefined, bubbleId: 'one', createdAt: time, detailsPending: false },
      ...{ ownerId: account, trainerId: null, goneTrainerId: 2, templateId: null, goneTemplateId: 3 },
    },
    children: [],
  },
};
const wholeOf = (name: Name) => ({ ...records[name].needed, ...records[name].optional });
// `Object.keys` does not know that these are all the keys there are.
const names = Object.keys(records) as Name[];

/** The parsed record with these changes, or its first issue; fields changed to undefined are left out. */
function read(name: Name, change: Record<string, unknown> = {}, schema: Kind['record'] = kinds[name].record) {
  const record = JSON.parse(JSON.stringify({ ...wholeOf(name), ...change }));
  return parseRecord(schema, kinds[name], record, account);
}
const readRow = (name: Name, change: Record<string, unknown> = {}) => {
  const data = read(name, change);
  if (typeof data === 'string') throw new Error(data);
  return data.row;
};

const trainerSegment = {
  id: 1,
  type: 'endurance',
  passed: true,
  percentGrade: 100,
  points: 5,
  durationMeasured: 1,
  durationTarget: 2,
  repsMeasured: 3,
  repsTarget: 4,
  speedMeasured: 1.5,
  speedTarget: 2.5,
  targetDepth: 3.5,
  targetWindow: 4.5,
  longestDeepthroat: 5.5,
  strokeLength: 6.5,
  distanceTravelled: 7.5,
  order: 3,
  createdAt: other,
};

describe('a record of an upstream', () => {
  it.each(names)(
    'is rejected without a required field, and has all fields, each in its place: %s',
    (name) => {
      expect(read(name)).toEqual({ ...changed[name], row: { ...wholeOf(name), ...changed[name]?.row } });
      const needed = Object.keys(wholeOf(name)).filter((field) => {
        const data = read(name, { [field]: undefined });
        if (typeof data === 'string') expect(data).toMatch(new RegExp(`^${field}: `));
        return typeof data === 'string';
      });
      expect(needed).toEqual(Object.keys(records[name].needed));
      for (const field in records[name].optional) expect(read(name, { [field]: null })).toHaveProperty('row');
    },
  );

  it.each(names.filter((name) => !['dttTemplates', 'dttSessions'].includes(name)))(
    'is rejected if another account owns it: %s',
    (name) => {
      expect(read(name, { ownerId: 8 })).toBe("ownerId: is not the account's, which is 7");
    },
  );

  it.each<[Name, Record<string, unknown>, Record<string, unknown>]>([
    ['dttDevices', { serialNumber: 1001 }, { serialNumber: '1001' }],
    ['dttDevices', { softwareVersion: 2.1 }, { softwareVersion: '2.1' }],
    ['dttDevices', { id: '1', ownerId: '7', apiHits: '12' }, { id: 1, ownerId: 7, apiHits: 12 }],
    ['dttTemplates', { ownerId: '7' }, { ownerId: account, foreignOwnerId: null }],
    ['dttTemplates', { targetDepth: '50.5', targetWindow: '-1' }, { targetDepth: 50.5, targetWindow: -1 }],
    ['ossmDevices', { chip: 32, pairingCode: 1234 }, { chip: '32', pairingCode: '1234' }],
    ['dttSessions', { trainer_id: '2', bubble_id: 5 }, { goneTrainerId: 2, bubbleId: '5' }],
  ])(
    'may have a number in place of text, and digits in place of a number: %s with %o',
    (name, change, row) => {
      expect(readRow(name, change)).toMatchObject(row);
    },
  );

  it.each<[Record<string, unknown>, string]>([
    [{ serialNumber: 2 ** 60 }, 'serialNumber: Invalid input: expected string, received number'],
    [{ serialNumber: true }, 'serialNumber: Invalid input: expected string, received boolean'],
    [{ id: 'many' }, 'id: Invalid input: expected number, received string'],
    [{ id: '1.5' }, 'id: Invalid input: expected int, received number'],
  ])('is rejected with %o', (change, issue) => {
    expect(read('dttDevices', change)).toBe(issue);
  });

  it('has digits and a fraction in place of a number, and no other text', () => {
    const texts = ['', ...'1. .5 1.5.5 a1 1a --1 +1 0x10 1e3 12 -1 -0.25 10.05'.split(' ')];
    const values = texts.map((hueShift) => Object(Object(read('lkbxDevices', { hueShift })).row).hueShift);
    expect(values).toEqual([...Array(10).fill(undefined), 12, -1, -0.25, 10.05]);
  });

  it('names the place of what is wrong in a segment, of which there are a thousand at most', () => {
    const segment = { id: 1, type: 'warmup', duration: 1 };
    const Segment = Array(1_000).fill(segment);
    expect(read('dttTemplates', { Segment })).toHaveProperty('children.length', 1_000);
    const issue = 'Segment: Too big: expected array to have <=1000 items';
    expect(read('dttTemplates', { Segment: [...Segment, segment] })).toBe(issue);
    const wrong = { Segment: [segment, { ...segment, type: null }] };
    expect(read('dttTemplates', wrong)).toBe('Segment.1.type: Invalid input: expected string, received null');
  });

  it.each<[field: string, json: string, value: unknown]>([
    ['lastVisited', '"1000-01-01T00:00:00Z"', '1000-01-01T00:00:00.000Z'],
    ['lastVisited', '"9999-12-31T23:59:59.999Z"', '9999-12-31T23:59:59.999Z'],
    ['lastVisited', '"2026-01-01T00:00:00.999999999Z"', '2026-01-01T00:00:00.999Z'],
    ['lastVisited', '"2026-01-01T00:00:00+15:59"', '2025-12-31T08:01:00.000Z'],
    ['OSSMFirmwareId', '-2147483648', -2147483648],
    ['OSSMFirmwareId', '1e3', 1000],
    ['chip', '"😀 \\ud83d\\ude00 \\u0001"', '😀 😀 \u0001'],
    ['lastVisited', '"0999-12-31T23:59:59Z"', undefined],
    ['lastVisited', '"1000-01-01T00:00:00+00:01"', undefined],
    ['lastVisited', '"9999-12-31T23:59:59-00:01"', undefined],
    ['lastVisited', '"infinity"', undefined],
    ['lastVisited', '"2026-02-29T00:00:00Z"', undefined],
    ['lastVisited', '1767225600', undefined],
    ['OSSMFirmwareId', '2147483648', undefined],
    ['OSSMFirmwareId', '1e999', undefined],
    ['chip', '"a\\u0000b"', undefined],
    ['chip', '"\\ud83d"', undefined],
    ['chip', `"${'x'.repeat(256)}"`, undefined],
    ['chip', `"${'x'.repeat(255)}"`, 'x'.repeat(255)],
    ['pairingCode', `"${'x'.repeat(10_001)}"`, undefined],
    ['pairingCode', `"${'x'.repeat(10_000)}"`, 'x'.repeat(10_000)],
    ['pairingCode', '-9007199254740991', '-9007199254740991'],
    ['pairingCode', '-9007199254740992', undefined],
    ['id', '1', 1],
    ['id', '0', undefined],
  ])(
    'has values at the limits of what can be stored, and is rejected beyond: %s %s',
    (field, json, value) => {
      const { data } = kinds.ossmDevices.record.safeParse({
        ...wholeOf('ossmDevices'),
        [field]: JSON.parse(json),
      });
      expect(Object(data?.row)[field]).toBe(value);
    },
  );

  it('has a MAC address of another form normalized, and null in place of what is none', () => {
    const forms = ['02-00-00-00-00-0a', '0200.0000.000A', '02 00 00 00 00 0a', '02000000000a'];
    const wrong = ['none', '02:00:00:00:00', '02:00:00:00:00:0A:0B', '02:00:00:00:00:0G', 'x020000000000'];
    const found = [...forms, ...wrong].map((macAddress) => readRow('ossmDevices', { macAddress }).macAddress);
    expect(found).toEqual([...Array(4).fill('02:00:00:00:00:0A'), ...Array(5).fill(null)]);
  });
});

it.each<[Name, Record<string, unknown>, object]>([
  // What a session leaves out is null, also if an earlier response had it.
  ['dttSessions', { name: undefined, settings_id: undefined }, { row: { name: null, goneTemplateId: null } }],
  ['dttDevices', { apiHits: -1 }, { row: { apiHits: null } }],
  ['dttDevices', { apiHits: 'many' }, { row: { apiHits: null } }],
  ['lockTemplates', { breakRegularity: -1 }, { row: { breakRegularity: null } }],
  ['lockSessions', { isActive: true, lockState: 'completed' }, { row: { isActive: false } }],
  ['lockSessions', { isActive: true, lockState: 'abandoned' }, { row: { isActive: false } }],
  ['lockSessions', { isActive: true, lockState: 'frozen' }, { row: { isActive: true } }],
  ['dttTemplates', { name: ' ' }, { row: { name: 'template 1' } }],
  ['lockTemplates', { name: '' }, { row: { name: 'lock template 1' } }],
  ['lockTemplates', { duration: -1 }, { row: { duration: 0 } }],
  ['lockSessions', { duration: -1 }, { row: { duration: 0 } }],
  ['dttTemplates', { Segment: [{ id: 1, type: 'x', duration: -1 }] }, { children: [{ id: 1, duration: 0 }] }],
  ...[
    { percentGrade: 100.5 },
    ...['percentGrade', 'longestDeepthroat', 'distanceTravelled'].map((field) => ({ [field]: -0.5 })),
    ...['durationMeasured', 'durationTarget', 'repsMeasured', 'repsTarget'].map((field) => ({ [field]: -1 })),
  ].map((wrong): [Name, Record<string, unknown>, object] => [
    'dttSessions',
    { TrainerSegment: [{ ...trainerSegment, type: 'levitation', ...wrong }] },
    {
      children: [{ ...trainerSegment, type: 'levitation', [Object.keys(wrong).join()]: null, sessionId: 1 }],
    },
  ]),
])(
  'an invalid value is null, or a default where the field is required: %s with %o',
  (name, change, record) => {
    expect(read(name, change)).toMatchObject(record);
  },
);

describe('the segments of a record', () => {
  it('of a template are numbered as they come, and have no repeat unless they state it', () => {
    const Segment = [
      { id: 5, type: 'training', duration: 60, repeat: 3 },
      { id: 4, type: 'warmup', duration: 30 },
      { id: 6, type: 'rest', duration: 0, repeat: 0 },
      { id: 7, type: 'rest', duration: 1, repeat: null },
    ];
    expect(read('dttTemplates', { Segment })).toMatchObject({
      children: [
        { id: 5, type: 'training', duration: 60, repeat: 3, position: 0, templateId: 1 },
        { id: 4, type: 'warmup', duration: 30, repeat: null, position: 1, templateId: 1 },
        { id: 6, type: 'rest', duration: 0, repeat: 0, position: 2, templateId: 1 },
        { id: 7, repeat: null, position: 3 },
      ],
    });
  });

  it('of a session have the order and the time that they state, in whichever order they come', () => {
    const TrainerSegment = [trainerSegment, { ...trainerSegment, id: 2, order: 0, percentGrade: 0 }];
    expect(read('dttSessions', { TrainerSegment })).toHaveProperty('children', [
      { ...trainerSegment, sessionId: 1 },
      { ...trainerSegment, id: 2, order: 0, percentGrade: 0, sessionId: 1 },
    ]);
  });

  it.each([2, -1, undefined])('of a session are numbered as they come if one has the order %s', (wrong) => {
    const TrainerSegment = [2, wrong, 0].map((order, index) => ({ id: index + 1, type: 'bounce', order }));
    const children = [{ order: 0 }, { order: 1 }, { order: 2 }];
    expect(read('dttSessions', { TrainerSegment })).toMatchObject({ children });
  });

  it('of a session in a list have the fields that the list has, and no others', () => {
    const data = read('dttSessions', { TrainerSegment: [trainerSegment] }, kinds.dttSessions.summary);
    const { id, type, passed, percentGrade, points } = trainerSegment;
    const summary = { id, type, passed, percentGrade, points, sessionId: 1 };
    expect(data).toHaveProperty('children', [{ ...summary, order: 0, createdAt: null }]);
    const row = { ...readRow('dttSessions'), detailsPending: true, listedDigest: expect.any(String) };
    expect(data).toHaveProperty('row', row);
  });
});

describe('the account of an upstream', () => {
  const whole = {
    id: account,
    username: 'demo',
    accountType: 'standard',
    subscriptionTier: 'ultra',
    league: 1,
    rank: 2,
    totalPoints: 3,
    matchPoints: 4,
    profileImage: 'https://example.com/x.jpg',
    profileDescription: 'Description',
    profileTitle: 'Title',
    dttTotalReps: 5,
    dttTotalSessions: 6,
  };

  it('is parsed with all its fields, of which only id and username are required', () => {
    expect(user.parse(whole)).toEqual(whole);
    const bare = { id: account, username: 'd' };
    expect(user.parse(bare)).toEqual(bare);
    for (const missing of [{ id: account }, { username: 'd' }, { ...bare, username: '' }])
      expect(user.safeParse(missing).success).toBe(false);
    const nulls = Object.fromEntries(Object.keys(whole).map((field) => [field, null]));
    expect(user.parse({ ...nulls, ...bare })).toEqual({ ...nulls, ...bare });
  });
});
