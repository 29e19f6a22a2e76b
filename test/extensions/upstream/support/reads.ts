/** The reads of the REST interface, to compare the responses of two gateways. */

import { expect } from 'vitest';
import { routes } from '../../../../src/rest/routes.ts';
import type { TestGateway } from '../../../support/gateway.ts';
import type { Scene } from './upstream.ts';

/** Every read of the REST interface, with these queries for lists and these ids for records. */
export const pathsWith = (queries: readonly string[], ids: readonly number[]) =>
  routes
    .filter(({ method }) => method === 'GET')
    .flatMap(({ path, isList }) => {
      if (isList) return queries.map((query) => path + query);
      return path.includes('{id}') ? ids.map((id) => path.replace('{id}', String(id))) : [path];
    });
/** Lists in three pages, and records by ids that exist, belong to another account, or do not exist. */
export const allReads = pathsWith(['', '?limit=100', '?limit=7&offset=3'], [1, 2, 3, 4, 7, 24, 25]);
/** Fewer reads, which still show a change of every kind of record. */
export const shortReads = pathsWith(['?limit=100'], [1, 2, 3, 6, 7, 25]);

export async function responsesOf(
  gateway: Pick<TestGateway, 'url'>,
  token: string,
  paths: readonly string[],
) {
  const responses: Record<string, string> = {};
  for (const path of paths) {
    const response = await fetch(`${gateway.url}/api/v1${path}`, {
      headers: { Authorization: `Bearer ${token}` },
    });
    responses[path] = `${response.status} ${await response.text()}`;
  }
  return responses;
}

/** Expects the same responses from the mirror and its source. */
export async function expectSameReads(
  { source, sourceToken }: Scene,
  mirror: { gateway: TestGateway; token: string },
  paths: readonly string[],
): Promise<void> {
  expect(await responsesOf(mirror.gateway, mirror.token, paths)).toEqual(
    await responsesOf(source, sourceToken, paths),
  );
}
