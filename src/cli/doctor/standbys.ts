/** Checks of the standbys that are read from: whether each of them can be. */

import { serverOf } from '../../database/connection/client.ts';
import type { Sql } from '../../database/reader/sql.ts';
import { connectStandby, type Primary, readPrimary } from '../../database/replicas/standby.ts';
import { createSession } from '../../database/session.ts';
import { errorText, withoutPassword } from '../../errors.ts';
import { type Found, timeout } from './finding.ts';

/** @param url the primary's. */
export async function checkStandbys(url: string, standbys: readonly string[]): Promise<Found[]> {
  const { client, connect, close } = createSession(serverOf(url), timeout);
  try {
    await connect();
    const run: Sql['run'] = async <Row extends object>(text: string, values: readonly unknown[]) =>
      (await client.query<Row>(text, [...values])).rows;
    const primary = await readPrimary({ run });
    return await Promise.all(standbys.map((each) => checkStandby(each, primary)));
  } catch (error) {
    return [{ says: `the primary: ${errorText(error)}`, advice: 'See to the database first.' }];
  } finally {
    await close();
  }
}

async function checkStandby(url: string, primary: Primary): Promise<Found> {
  const name = withoutPassword(url);
  try {
    const standby = await connectStandby({ url, bounds: { connections: 1, statement: timeout }, primary });
    standby.close();
    return `${name} can be read from`;
  } catch (error) {
    return {
      says: `${name}: ${errorText(error)}`,
      advice: 'It is not read from until that is mended: docs/deployment.md has what a standby needs.',
    };
  }
}
