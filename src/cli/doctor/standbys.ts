/** Checks of the standbys that are read from: whether each of them can be, and how far it is behind. */

import type { Config } from '../../config/config.ts';
import { serverOf } from '../../database/connection/client.ts';
import type { Sql } from '../../database/reader/sql.ts';
import { connectStandby, type Primary, readPrimary } from '../../database/replicas/standby.ts';
import { createSession } from '../../database/session.ts';
import { errorText, withoutPassword } from '../../errors.ts';
import { type CheckResult, type Finding, ok, problem, timeout } from './finding.ts';

/** More than so much, in bytes, a standby takes a while to replay. */
const largestLag = 16n * 1024n * 1024n;

export async function checkStandbys(config: Config): Promise<Finding[]> {
  const { DATABASE_URL: url, DATABASE_REPLICA_URLS: urls } = config;
  if (urls === undefined) return [];
  const check = 'standby';
  if (url === undefined)
    return [
      {
        check,
        ...problem('DATABASE_URL does not name their primary', 'Set it, or unset DATABASE_REPLICA_URLS.'),
      },
    ];
  const { client, connect, close } = createSession(serverOf(url), timeout);
  try {
    await connect();
    const run: Sql['run'] = async <Row extends object>(text: string, values: readonly unknown[]) =>
      (await client.query<Row>(text, [...values])).rows;
    const primary = await readPrimary({ run });
    return await Promise.all(urls.map(async (each) => ({ check, ...(await checkStandby(each, primary)) })));
  } catch (error) {
    return [{ check, ...problem(`the primary: ${errorText(error)}`, 'See to the database first.') }];
  } finally {
    await close();
  }
}

async function checkStandby(url: string, primary: Primary): Promise<CheckResult> {
  const name = withoutPassword(url);
  const { position } = await primary.take();
  try {
    const standby = await connectStandby({ url, bounds: { connections: 1, statement: timeout }, primary });
    standby.close();
    const lag = position > standby.replayed ? position - standby.replayed : 0n;
    return lag <= largestLag
      ? ok(`${name} is ${lag} bytes behind`)
      : problem(
          `${name} is ${lag} bytes behind`,
          'Reads of whoever has to know more go to the primary: see what holds it up.',
        );
  } catch (error) {
    return problem(
      `${name}: ${errorText(error)}`,
      'It is not read from until that is mended: docs/deployment.md has what a standby needs.',
    );
  }
}
