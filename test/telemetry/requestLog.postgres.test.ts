/** The log lines of requests, by the log level. */

import { describe, expect, it, onTestFinished } from 'vitest';
import { createLogger } from '../../src/telemetry/log.ts';
import { graphqlOnce, openTestGateway, rest } from '../support/gateway.ts';
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
  /** The entries of the requests, once there are so many. */
  const requests = async (count: number) => {
    const found = () =>
      lines.map((line): Record<string, unknown> => JSON.parse(line)).filter(({ msg }) => msg === 'responded');
    await expect.poll(found).toHaveLength(count);
    return found();
  };
  return { gateway, requests };
}

describe('the log of a request', () => {
  it('has the code of the first error in a GraphQL response, and at info nothing about the cache', async () => {
    const { gateway, requests } = await open('info');
    const missing = 'mutation { activateTemplate(template: { databaseId: 999 }) { template { name } } }';
    await graphqlOnce(gateway, undefined, '{ viewer { username } }');
    await graphqlOnce(gateway, token, '{ nothing }');
    await graphqlOnce(gateway, token, missing);
    await graphqlOnce(gateway, token, '{ viewer { username } }');
    await rest(gateway, token, '/dtt/999');
    await fetch(`${gateway.url}/graphql`, { method: 'DELETE' });
    const lines = await requests(6);
    expect(lines.filter((line) => 'cache' in line)).toEqual([]);
    expect(lines.map(({ status, code }) => [status, code])).toEqual([
      [401, 'UNAUTHENTICATED'],
      [200, 'BAD_USER_INPUT'],
      [200, 'NOT_FOUND'],
      [200, undefined],
      [404, undefined],
      [405, 'BAD_USER_INPUT'],
    ]);
  });

  it('has at debug whether there was a cached response', async () => {
    const { gateway, requests } = await open('debug');
    await rest(gateway, token, '/dtt/templates');
    await rest(gateway, token, '/dtt/templates');
    await graphqlOnce(
      gateway,
      token,
      'mutation { activateTemplate(template: { databaseId: 987654 }) { template { name } } }',
    );
    expect((await requests(3)).map(({ cache }) => cache)).toEqual(['miss', 'hit', undefined]);
  });
});
