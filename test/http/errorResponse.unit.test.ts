/** Which errors clients see as they are, and what they see of others. */

import { GraphQLError } from 'graphql';
import { expect, it, vi } from 'vitest';
import {
  argumentError,
  clientError,
  clientErrorOf,
  type ErrorCode,
  hiddenIn,
  statusOf,
  unauthenticated,
} from '../../src/errors.ts';
import { failureResponse } from '../../src/http/errorResponse.ts';
import type { Exchange } from '../../src/http/exchange.ts';

/** The status and the error of the response, and what is logged. */
function responseTo(failure: Error) {
  const report = vi.fn();
  // The parts of an exchange that are used.
  const exchange = { endpoint: 'rest', report } as unknown as Exchange;
  const { status, body } = failureResponse(exchange, failure);
  return [status, JSON.parse(String(body)).error, ...report.mock.calls.flat()];
}

it.each([
  unauthenticated('missing'),
  argumentError('first', 'too small'),
  // Also UNAUTHENTICATED, for which there is another function.
  ...(Object.keys(statusOf) as Exclude<ErrorCode, 'UNAUTHENTICATED'>[]).map((code) => clientError(code, 'x')),
])('an error meant for the client reaches the client unchanged: $extensions', (error) => {
  expect(clientErrorOf(error)).toBe(error);
  expect(hiddenIn(error)).toBeUndefined();
  const status = new Map<unknown, number>(Object.entries(statusOf)).get(error.extensions.code);
  expect(responseTo(error)).toEqual([status, error.message]);
});

const cause = new Error('secret');
const hiding = (extensions: object, path: string[] = []) =>
  new GraphQLError('secret', { extensions: { ...extensions }, path, originalError: cause });

it.each([
  hiding({}, ['viewer']),
  hiding({ code: 'SECRET' }),
  hiding({ code: 'toString' }),
  hiding({ argument: 'first' }),
  cause,
])('any other error is masked, and reported with its cause: $extensions', (error) => {
  const shown = clientErrorOf(error);
  expect(JSON.parse(JSON.stringify(shown))).toEqual({
    message: 'Internal server error',
    extensions: { code: 'INTERNAL_SERVER_ERROR' },
    ...(error instanceof GraphQLError && { path: error.path }),
  });
  expect(hiddenIn(shown)).toBe(cause);
  expect(responseTo(error)).toEqual([500, 'Internal server error', error]);
});
