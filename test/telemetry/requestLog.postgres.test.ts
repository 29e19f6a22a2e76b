/** The log lines of requests and of their statements, by the log level. */

import { describe, expect, it, onTestFinished } from 'vitest';
import { createLogger, logStatements } from '../../src/telemetry/log.ts';
import { graphqlOnce, openTestGateway, rest } from '../support/gateway.ts';
import { settings } from '../support/settings.ts';
import { databaseWith } from '../support/setUp.ts';

const {
  database,
  alice: { token },
} = await databaseWith('alice');

async function open(level: string) {
  const lines: string[] = [];
  const logger = createLogger(level, { write: (line: string) => lines.push(line) });
  const gateway = await openTestGateway({ ...database, close: async () => {} }, { logger });
  onTestFinished(() => gateway.close());
  const entries = () => lines.map((line): Record<string, unknown> => JSON.parse(line));
  /** The entries of the requests, once there are so many. */
  const requests = async (count: number) => {
    const found = () => entries().filter(({ msg }) => msg === 'responded');
    await expect.poll(found).toHaveLength(count);
    return found();
  };
  return { gateway, logger, entries, requests };
}

describe('the log of a request', () => {
  it('has the code of the first error in a GraphQL response', async () => {
    const { gateway, requests } = await open('info');
    const missing = 'mutation { activateTemplate(template: { databaseId: 999 }) { template { name } } }';
    await graphqlOnce(gateway, undefined, '{ viewer { username } }');
    await graphqlOnce(gateway, token, '{ nothing }');
    await graphqlOnce(gateway, token, missing);
    await graphqlOnce(gateway, token, missing);
    await graphqlOnce(gateway, token, '{ viewer { username } }');
    await rest(gateway, token, '/dtt/999');
    expect((await requests(6)).map(({ status, code }) => [status, code])).toEqual([
      [401, 'UNAUTHENTICATED'],
      [200, 'BAD_USER_INPUT'],
      [200, 'NOT_FOUND'],
      [200, 'NOT_FOUND'],
      [200, undefined],
      [404, undefined],
    ]);
  });

  it('has at debug whether there was a cached response, and its statements without values', async () => {
    const { gateway, logger, entries, requests } = await open('debug');
    const statements = logStatements(logger);
    onTestFinished(() => statements.close());
    await rest(gateway, token, '/dtt/templates');
    await rest(gateway, token, '/dtt/templates');
    await graphqlOnce(
      gateway,
      token,
      'mutation { activateTemplate(template: { databaseId: 987654 }) { template { name } } }',
    );
    const [read, again, write] = await requests(3);
    expect([read, again, write].map((entry) => entry?.cache)).toEqual(['miss', 'hit', undefined]);
    const taken = entries().filter(({ msg }) => msg === 'statement');
    const of = (entry: Record<string, unknown> | undefined) =>
      taken.filter(({ request }) => request === entry?.request).map(({ sql }) => sql);
    expect(of(read)).toContainEqual(expect.stringMatching(/^SELECT .*"DttTemplate"/));
    expect(of(again)).toEqual([]);
    expect(of(write)).toEqual([
      expect.stringMatching(/^WITH .*"DttTemplate"/),
      // For `Dovetail-Position`.
      ...('DATABASE_REPLICA_URLS' in settings
        ? [expect.stringContaining('pg_current_wal_insert_lsn()')]
        : []),
    ]);
    expect(taken.every(({ ms }) => typeof ms === 'number' && ms >= 0)).toBe(true);
    expect(JSON.stringify(taken)).not.toMatch(/987654|dvt_/);
  });
});
