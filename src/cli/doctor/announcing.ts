/** The check of how a server's database announces: by NOTIFY, or by messages in its log. */

import type pg from 'pg';
import { type ServerConfig, serverOf } from '../../database/connection/client.ts';
import type { ServerUrls } from '../../database/connection/find.ts';
import { checkReplicationSlot, findSetupProblem, readFeedSetup } from '../../database/feed/announceMode.ts';
import type { Progress } from '../../database/migrate.ts';
import { createSession } from '../../database/session.ts';
import { type CheckResult, type Finding, ok, problem, skipped, timeout } from './finding.ts';

/** What NOTIFY costs, as docs/decisions/response-cache.md has measured it. */
const cost = 'by NOTIFY, for which commits wait for each other: some 3,500 a second in all';

/** How changes are announced, of a server: the embedded engine always notifies. */
export async function checkAnnouncing(
  client: pg.ClientBase,
  server: ServerConfig,
  ways: ServerUrls | undefined,
  progress: Progress,
): Promise<Finding[]> {
  if (!ways) return [];
  const check = 'announcements';
  if (ways.directUrl === undefined) return [{ check, ...(await judge(client, server, progress)) }];
  const direct = serverOf(ways.directUrl);
  const session = createSession(direct, timeout);
  try {
    const isThere = await session.connect().then(
      () => true,
      () => false,
    );
    if (!isThere) return [{ check, ...skipped('the direct connection comes first') }];
    return [{ check, ...(await judge(session.client, direct, progress)) }];
  } finally {
    await session.close();
  }
}

/** @param client connects as the gateway does that chooses how changes are announced. */
async function judge(
  client: pg.ClientBase,
  direct: ServerConfig,
  { pending }: Progress,
): Promise<CheckResult> {
  if (pending.length > 0) return skipped('the pending migrations come first');
  const setup = await readFeedSetup(client);
  if (setup.mode === 'notify') {
    const lack = findSetupProblem(setup) ?? (await checkReplicationSlot(direct));
    return ok(
      lack ? `${cost}; not by messages, since ${lack.says}` : `${cost}; CHANGE_FEED=logical is faster`,
    );
  }
  if (!setup.decodes) return ok(`${cost}; not by messages, since wal_level is ${setup.walLevel}`);
  const lack = setup.isPublished
    ? await checkReplicationSlot(direct)
    : { says: 'there is no publication dovetail', advice: 'As the owner: CREATE PUBLICATION dovetail;' };
  if (lack) return problem(`by messages in the log, which cannot be read: ${lack.says}`, lack.advice);
  return ok(
    setup.mode === 'both'
      ? `${cost}, and by messages in the log as well: the next start with CHANGE_FEED=logical or notify looks again`
      : 'by messages in the log',
  );
}
