/** Why results end although the client wants more, and what it is told. */

import type { GraphQLFormattedError } from 'graphql';
import { type ErrorCode, messages, unauthorizedMessage } from '../errors.ts';

export type Ending = keyof typeof endings;

const endings = {
  revoked: { message: unauthorizedMessage('invalid'), code: 'UNAUTHENTICATED' },
  expired: { message: unauthorizedMessage('expired'), code: 'UNAUTHENTICATED' },
  failed: { message: messages.internal, code: 'INTERNAL_SERVER_ERROR' },
  closing: { message: messages.closing, code: 'SERVICE_UNAVAILABLE' },
} satisfies Record<string, { message: string; code: ErrorCode }>;

/** The errors that end the results, though nothing is wrong with the operation. */
export function errorsOf(ending: Ending): readonly GraphQLFormattedError[] {
  const { message, code } = endings[ending];
  return [{ message, extensions: { code } }];
}

/** The error of an operation whose client gets these errors instead of a result. Yoga hands on an error of this name as it is. */
export class OperationFailed extends Error {
  override name = 'AbortError';
  readonly errors: readonly GraphQLFormattedError[];

  constructor(errors: readonly GraphQLFormattedError[]) {
    super(errors[0]?.message);
    this.errors = errors;
  }
}
