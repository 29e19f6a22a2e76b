/** Which tokens are the gateway's own, and are never shown to the upstream. */

import { expect, it } from 'vitest';
import { createToken, revokeToken, rotateToken } from '../../../../src/auth/tokens.ts';
import { isIssued } from '../../../../src/extensions/upstream/mirror/credentials.ts';
import { databaseWith } from '../../../support/setUp.ts';

const { database } = await databaseWith();
const { client, pool, sql } = database;

it('a token is the gateway’s own if it was issued here, whether it is active, expired, revoked or replaced', async () => {
  await client.user.create({ data: { username: 'owner', subscriptionTier: 'ultra' } });
  const [active, expired, revoked, replaced] = await Promise.all(
    ['active', 'expired', 'revoked', 'replaced'].map((name) => createToken(pool, 'owner', name)),
  );
  await client.apiToken.update({ where: { id: expired?.id ?? 0 }, data: { expiresAt: new Date(0) } });
  await revokeToken(pool, revoked?.id ?? 0);
  const latest = await rotateToken(pool, replaced?.id ?? 0, 0);
  for (const each of [active, expired, revoked, replaced, latest])
    expect(await isIssued(sql, each?.token ?? '')).toBe(true);
  for (const unknown of [`dvt_${'a'.repeat(43)}`, 'of-another-service'])
    expect(await isIssued(sql, unknown), unknown).toBe(false);
});
