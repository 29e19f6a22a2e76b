/** Values at and beyond the limits of what can be stored: a record with one beyond them is skipped, others are written. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SyncReport } from '../../src/mirror/sync.ts';
import { openScene, pathOf, reply, type Scene } from '../support/upstream.ts';

/** Fields of an OSSM device, and what is stored of them. They are in JSON, as some have no value in JavaScript. */
const accepted: [field: string, json: string, value: unknown][] = [
  ['lastVisited', '"1000-01-01T00:00:00Z"', '1000-01-01T00:00:00.000Z'],
  ['lastVisited', '"9999-12-31T23:59:59.999Z"', '9999-12-31T23:59:59.999Z'],
  ['lastVisited', '"2026-01-01T00:00:00.999999999Z"', '2026-01-01T00:00:00.999Z'],
  ['lastVisited', '"2026-01-01T00:00:00+15:59"', '2025-12-31T08:01:00.000Z'],
  ['lastVisited', '"2026-01-01T00:00:00-15:59"', '2026-01-01T15:59:00.000Z'],
  ['lastVisited', '"2024-02-29T12:00:00Z"', '2024-02-29T12:00:00.000Z'],
  ['pairingExpires', 'null', null],
  ['OSSMFirmwareId', '2147483647', 2147483647],
  ['OSSMFirmwareId', '-2147483648', -2147483648],
  ['OSSMFirmwareId', '1e3', 1000],
  ['chip', '"😀 \\u00e9 \\ud83d\\ude00"', '😀 é 😀'],
  ['chip', '"\\\\u0000 \\u0001 \\u2028"', '\\u0000 \u0001 \u2028'],
];

const skipped: [field: string, json: string][] = [
  ['lastVisited', '"0000-01-01T00:00:00Z"'],
  ['lastVisited', '"0999-12-31T23:59:59Z"'],
  ['lastVisited', '"1000-01-01T00:00:00+00:01"'],
  ['lastVisited', '"9999-12-31T23:59:59-00:01"'],
  ['lastVisited', '"9999-12-31T23:59:59.999-15:59"'],
  ['lastVisited', '"10000-01-01T00:00:00Z"'],
  ['lastVisited', '"+010000-01-01T00:00:00Z"'],
  ['lastVisited', '"+275760-09-13T00:00:00.001Z"'],
  ['lastVisited', '"294277-01-01T00:00:00Z"'],
  ['lastVisited', '"-000001-01-01T00:00:00Z"'],
  ['lastVisited', '"infinity"'],
  ['lastVisited', '"-infinity"'],
  ['lastVisited', '"now"'],
  ['lastVisited', '""'],
  ['lastVisited', '"2026-01-01T24:00:00Z"'],
  ['lastVisited', '"2016-12-31T23:59:60Z"'],
  ['lastVisited', '"2026-02-29T00:00:00Z"'],
  ['lastVisited', '"2026-01-01T00:00:00+24:00"'],
  ['lastVisited', '"2026-01-01"'],
  ['lastVisited', '1767225600'],
  ['OSSMFirmwareId', '2147483648'],
  ['OSSMFirmwareId', '-2147483649'],
  ['OSSMFirmwareId', '1.5'],
  ['OSSMFirmwareId', '1e999'],
  ['OSSMFirmwareId', '"NaN"'],
  ['chip', '"a\\u0000b"'],
  ['chip', '"\\ud83d"'],
  ['chip', '"\\ude00\\ud83d"'],
  ['chip', `"${'x'.repeat(256)}"`],
];

/** Values of `hueShift` of an LKBX device, and what is stored of them: undefined if the record is skipped. */
const numbers: [json: string, value: number | undefined][] = [
  ['1.7976931348623157e308', 1.7976931348623157e308],
  ['-1.7976931348623157e308', -1.7976931348623157e308],
  ['5e-324', 5e-324],
  ['1e-400', 0],
  ['-0', 0],
  ['0.1', 0.1],
  ['1e309', undefined],
  ['-1e309', undefined],
  ['"Infinity"', undefined],
  ['null', undefined],
];

const device = (id: number) => ({
  id,
  bubbleId: `"device-${id}"`,
  macAddress: '"02:00:00:00:00:00"',
  ownerId: 1,
  locked: 'true',
  hueShift: 1,
  chip: '"ESP32"',
});
type Fields = Record<string, string | number>;
const print = (fields: Fields) => `{${Object.entries(fields).map(([name, json]) => `"${name}":${json}`)}}`;

const lists: Record<string, Fields[]> = {
  '/ossm': [...accepted, ...skipped].map(([field, json], index) => ({ ...device(index + 1), [field]: json })),
  '/lkbx': [
    ...numbers.map(([json], index) => ({ ...device(index + 1), hueShift: json })),
    { ...device(numbers.length + 1), bubbleId: '"longer than the column"' },
  ],
};

let scene: Scene;
let report: SyncReport;
beforeAll(async () => {
  scene = await openScene();
  scene.proxy.misbehave = (request, response) => {
    const [, list = '', id] = /^(\/ossm|\/lkbx)(?:\/(\d+))?$/.exec(pathOf(request)) ?? [];
    const records = lists[list];
    if (!records) return false;
    const data =
      id === undefined
        ? `{"data":[${records.map(print)}],"pagination":{"limit":100,"offset":0}}`
        : print(records[Number(id) - 1] ?? {});
    return reply(response, 200, `{"ok":true,"data":${data}}`);
  };
  // A column is made shorter, since no value is known that passes all checks and is rejected by the database.
  await scene.target.pool.query('ALTER TABLE "LkbxDevice" ALTER COLUMN "bubbleId" TYPE varchar(17)');
  report = await scene.sync();
});
afterAll(() => scene?.close());

describe('a mirrored record', () => {
  it.each(accepted.map(([field, json, value], index) => [field, json, value, index + 1] as const))(
    'is stored with %s %s',
    async (field, _, value, id) => {
      const row = await scene.target.client.ossmDevice.findUnique({ where: { id } });
      expect(JSON.parse(JSON.stringify(row))).toMatchObject({ [field]: value });
    },
  );

  it('is skipped with a value beyond the limits, and counted', async () => {
    const rows = await scene.target.client.ossmDevice.findMany({ select: { id: true } });
    expect(rows.map(({ id }) => id).sort((one, other) => one - other)).toEqual(
      accepted.map((_, index) => index + 1),
    );
    expect(report.countsByKind.get('OSSM devices')).toMatchObject({
      created: accepted.length,
      skipped: skipped.length,
    });
  });

  it('has a note with the reason why it is skipped', () => {
    expect(report.notes).toContain(
      '/lkbx, record 11: value too long for type character varying(17); skipped.',
    );
    expect(report.notes).toContain(
      '/ossm, record 16: lastVisited: is not between the years 1000 and 9999; skipped.',
    );
  });

  it('is stored with any number that is finite', async () => {
    const rows = await scene.target.client.lkbxDevice.findMany({ orderBy: { id: 'asc' } });
    const good = numbers.flatMap(([, value]) => value ?? []);
    expect(rows.map(({ hueShift }) => hueShift + 0)).toEqual(good);
    expect(report.countsByKind.get('LKBX devices')).toMatchObject({
      skipped: numbers.length - good.length + 1,
    });
  });

  it('that is skipped does not prevent other kinds from being read', () => {
    expect(report.countsByKind.get('DTT sessions')).toMatchObject({ created: 60, skipped: 0 });
  });
});
