/** Whether messages can be read from the log of a server, found out by trying. */

import { randomBytes } from 'node:crypto';
import type pg from 'pg';
import { type Diagnosis, errorText, systemCodeOf } from '../../errors.ts';
import { pause } from '../waiting.ts';
import { openReplication } from './slot.ts';

/** How long, in milliseconds, a slot is waited for: one that can be made waits for those who write. */
const longestTrial = 3_000;

/** Tries to make a slot. Gives undefined if it can be, or could be once transactions are over that write. */
export async function checkReplicationSlot(direct: pg.ClientConfig): Promise<Diagnosis | undefined> {
  const over = new AbortController();
  try {
    const client = await openReplication(direct, over);
    const slot = `dovetail_trial_${randomBytes(8).toString('hex')}`;
    const made = client.query(
      `CREATE_REPLICATION_SLOT ${slot} TEMPORARY LOGICAL pgoutput (SNAPSHOT 'nothing')`,
    );
    await Promise.race([made, pause(longestTrial, over.signal)]);
    made.catch(() => {});
    return undefined;
  } catch (error) {
    return { says: errorText(error), advice: adviceOn(error) };
  } finally {
    over.abort();
  }
}

const raise = (setting: string) =>
  `Raise ${setting} and start the server again: one for each standby, one for each process of a gateway, and one more for a start.`;

function adviceOn(error: unknown): string {
  const code = systemCodeOf(error);
  if (code === '42501')
    return 'Give the role the right: ALTER ROLE … REPLICATION; hosted services have a role for it to be granted, such as rds_replication.';
  if (code === '53400') return raise('max_replication_slots');
  if (code === '53300') return raise('max_wal_senders');
  if (code === '28000') return 'Let the role connect, in pg_hba.conf.';
  if (/startup parameter/.test(errorText(error)))
    return 'A pooler stands in between: name the server itself in DATABASE_DIRECT_URL.';
  return 'Look at the log of the server.';
}
