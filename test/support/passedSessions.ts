/** Sessions for the tests of clients: a list of three pages. */

import type { PrismaClient } from '../../src/database/generated/prisma/client.ts';
import type { Account } from './accounts.ts';

/** Creates sessions. @returns the names of those that were passed, oldest first: more than two pages of 10. */
export async function addPassedSessions(
  database: PrismaClient,
  account: Account,
): Promise<(string | null)[]> {
  await database.dttSession.createMany({
    data: Array.from({ length: 32 }, (_, index) => ({
      ownerId: account.userId,
      trainerId: account.dttDevices[0],
      bubbleId: `${account.username}-many-${index}`,
      name: `Session ${index}`,
      passed: index % 4 === 0 ? null : true,
      createdAt: new Date(Date.UTC(2026, 1, 1, index)),
    })),
  });
  const rows = await database.dttSession.findMany({
    where: { ownerId: account.userId, passed: true },
    orderBy: { createdAt: 'asc' },
  });
  return rows.map(({ name }) => name);
}
