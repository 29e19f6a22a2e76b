import { GraphQLError } from 'graphql';
import { describe, expect, it } from 'vitest';
import {
  argumentError,
  clientError,
  clientErrorOf,
  codeOf,
  hiddenIn,
  statusOf,
  unauthenticated,
} from '../../src/errors.ts';

it('an error about an argument names the argument, and a masked error does not', () => {
  const about = (error: GraphQLError) => clientErrorOf(error).extensions;
  expect(about(argumentError('first', 'too small'))).toEqual({ code: 'BAD_USER_INPUT', argument: 'first' });
  const masked = new GraphQLError('secret', {
    originalError: new Error('secret'),
    extensions: { argument: 'first' },
  });
  expect(about(masked)).toEqual({ code: 'INTERNAL_SERVER_ERROR' });
});

it.each(Object.keys(statusOf) as (keyof typeof statusOf)[])(
  'an error meant for the client reaches the client unchanged: %s',
  (code) => {
    const isToken = code === 'UNAUTHENTICATED';
    const error = isToken ? unauthenticated('missing') : clientError(code, 'too late');
    expect(codeOf(error)).toBe(code);
    expect(clientErrorOf(error)).toBe(error);
    expect(hiddenIn(error)).toBeUndefined();
  },
);

describe('any other error', () => {
  const ofResolver = new Error('secret');
  const masked = { message: 'Internal server error', extensions: { code: 'INTERNAL_SERVER_ERROR' } };

  const path = ['x'];

  it.each<[string, Error, Error | undefined]>([
    [
      'of a resolver',
      new GraphQLError('secret', { path: ['viewer'], originalError: ofResolver }),
      ofResolver,
    ],
    ['that is none of GraphQL', ofResolver, ofResolver],
    ...[{ code: 'SECRET' }, { code: 'toString' }, { secret: 1 }].map((extensions): [string, Error, Error] => [
      `with the extensions ${JSON.stringify(extensions)}`,
      new GraphQLError('secret', { extensions, path, originalError: ofResolver }),
      ofResolver,
    ]),
  ])('is masked, and reported with its cause: %s', (_, error, cause) => {
    const shown = clientErrorOf(error);
    expect(JSON.parse(JSON.stringify(shown))).toEqual({
      ...masked,
      ...(error instanceof GraphQLError && { path: error.path }),
    });
    expect(hiddenIn(shown)).toBe(cause);
  });
});
