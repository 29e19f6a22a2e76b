/** What a mirror writes and reads is the same on either engine; mirror.slow.postgres.test.ts has the rest. */

import { afterAll, describe, expect, it } from 'vitest';
import { countChanges, reportRows } from '../../../../src/extensions/upstream/mirror/report.ts';
import { stillMirror } from '../support/mirrorService.ts';
import { allReads, expectSameReads, shortReads } from '../support/reads.ts';
import { contents, openScene } from '../support/upstream.ts';

const scene = await openScene();
afterAll(() => scene.close());

/** Opens a gateway with the mirror, which is not refreshed and sends activations to the upstream. */
const openMirror = () => scene.openMirror(stillMirror(scene.target.pool, scene.upstream));

/** Each test goes on where the one before has ended. */
describe('a mirror', () => {
  it('responds to every REST route byte for byte as the upstream does', async () => {
    expect(allReads.length).toBeGreaterThan(80);
    const advanced: unknown[] = [];
    const report = await scene.sync({ onProgress: (...step) => advanced.push(step) });
    expect(report.requests).toBe(scene.proxy.requests.length);
    expect(reportRows(report).map((cells) => cells.join(' '))).toEqual([
      'user 1 1 0 0 0 0',
      'DTT devices 2 2 0 0 0 0',
      'DTT templates 5 5 0 0 0 0',
      'LKBX devices 2 2 0 0 0 0',
      'lock templates 3 3 0 0 0 0',
      'lock sessions 7 7 0 0 0 0',
      'OSSM devices 1 1 0 0 0 0',
      'DTT sessions 24 24 0 0 0 0',
      // The last template has no segments, so its details change nothing.
      'details of DTT templates 5 0 4 1 0 0',
      'details of DTT sessions 24 0 24 0 0 0',
    ]);
    // The number of sessions is a field of the user.
    expect(advanced).toContainEqual(['DTT sessions', 24, 24]);
    expect(advanced).toContainEqual(['details of DTT sessions', 1, 24]);
    expect(advanced.at(-1)).toEqual(['details of DTT sessions', 24, 24]);
    expect(advanced).toContainEqual(['lock sessions', 7, undefined]);
    await expectSameReads(scene, await openMirror(), allReads);
  });

  it('is not changed by a second run, which reports no changes and takes at most 12 requests', async () => {
    const before = await contents(scene.target);
    // Another request of the same client, which does not belong to the run.
    await scene.upstream.get('/users/me');
    const requestsBefore = scene.upstream.requestCount();
    const report = await scene.sync();
    expect(await contents(scene.target)).toEqual(before);
    expect(report.requests).toBe(scene.upstream.requestCount() - requestsBefore);
    expect(report.requests).toBeLessThanOrEqual(12);
    expect(countChanges(report)).toBe(0);
  });

  it('has what is added, changed and removed upstream after the next run', async () => {
    const { client } = scene.source.database;
    await client.dttSession.update({ where: { id: 1 }, data: { passed: false, name: 'Renamed' } });
    await client.trainerSegment.updateMany({ where: { sessionId: 2, order: 0 }, data: { points: 7 } });
    await client.dttSession.create({
      data: {
        bubbleId: 'new',
        ownerId: 1,
        trainerId: 1,
        segments: { create: [{ type: 'bounce', order: 0, speedTarget: 1.5 }] },
      },
    });
    await client.dttTemplate.update({
      where: { id: 2 },
      data: { name: 'Other', segments: { updateMany: { where: {}, data: { duration: 5 } } } },
    });
    await client.user.update({ where: { id: 1 }, data: { activeTemplateId: 2, totalPoints: 1 } });
    await client.dttLibraryEntry.deleteMany({ where: { importedAt: { not: null } } });
    // Nothing refers to device 3. Sessions still refer to template 4.
    await client.dttDevice.delete({ where: { id: 3 } });
    // One lock session ends, and another begins.
    await client.lockSession.update({ where: { id: 1 }, data: { isActive: false, lockState: 'completed' } });
    await client.lockSession.create({
      data: {
        bubbleId: 'new',
        publicId: 'new',
        ownerId: 1,
        lockState: 'locked',
        duration: 60,
        isActive: true,
        templateId: 2,
      },
    });
    await client.lockSession.delete({ where: { id: 6 } });
    await client.ossmDevice.updateMany({ data: { pairingCode: 'ABC', pairingExpires: new Date(0) } });
    await client.lkbxDevice.deleteMany();

    const report = await scene.sync();
    expect(report.notes).toEqual([]);
    expect(report.countsByKind.get('DTT sessions')).toMatchObject({ created: 1, updated: 2 });
    expect(report.countsByKind.get('DTT devices')).toMatchObject({ gone: 1 });
    expect(report.countsByKind.get('lock sessions')).toMatchObject({ created: 1, updated: 1, gone: 1 });
    await expectSameReads(scene, await openMirror(), shortReads);
  });
});
