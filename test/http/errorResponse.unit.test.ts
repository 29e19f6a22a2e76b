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
import { errorResponse, httpErrors } from '../../src/http/errorResponse.ts';

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

it.each([
  ['badRequest', 400, 'BAD_USER_INPUT', 'Bad request'],
  ['tooSlow', 408, 'BAD_USER_INPUT', 'Request timeout'],
  ['tooBusy', 503, 'SERVICE_UNAVAILABLE', 'Too busy; try again'],
  ['internal', 500, 'INTERNAL_SERVER_ERROR', 'Internal server error'],
] as const)('an HTTP error has the envelope of each endpoint: %s', (name, status, code, message) => {
  const given = { Connection: 'close' };
  const bodies = {
    rest: JSON.stringify({ ok: false, error: message }),
    graphql: JSON.stringify({ errors: [{ message, extensions: { code } }] }),
    own: JSON.stringify({ own: message }),
    page: `${message}\n`,
  };
  const ofExtension = { name: 'own', errorBody: (own: string) => ({ own }) };
  for (const endpoint of ['rest', 'graphql', 'own', 'page'] as const) {
    const response = errorResponse(endpoint === 'own' ? ofExtension : endpoint, httpErrors[name], given);
    expect(response).toMatchObject({ status, headers: { ...given, 'Cache-Control': 'no-store' } });
    expect(response.body.toString()).toBe(bodies[endpoint]);
    expect(String(response.headers['Content-Type'])).toMatch(endpoint === 'page' ? /^text\/plain/ : /json/);
    // The log has the codes of these two, whose errors mostly have the status 200.
    const hasCode = endpoint === 'graphql' || endpoint === 'own';
    expect(response.errorCode).toBe(hasCode ? code : undefined);
  }
});
