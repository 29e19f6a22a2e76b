/** Authenticates the client of a WebSocket. */

import { CloseCode } from 'graphql-ws';
import { problemOf, type Viewer } from '../../auth/viewer.ts';
import { messages, type TokenProblem, tokenProblems } from '../../errors.ts';
import type { Exchange } from '../../http/exchange.ts';
import { isResponse } from '../../http/response.ts';
import type { UserQuota } from '../userQuota.ts';
import { type PipelineAccess, tooManyConnections } from './operations.ts';

/** Has the socket closed, with a code and a reason. */
export class CloseSocket extends Error {
  override name = 'CloseSocket';
  readonly code: number;

  constructor(code: number, reason: string) {
    super(reason);
    this.code = code;
  }
}

/** Codes of the registry that RFC 6455 opens (section 11.7). */
export const closeCodes = { goingAway: 1001, tryAgainLater: 1013 } as const;

export const unauthorized = (problem: TokenProblem) =>
  new CloseSocket(
    CloseCode.Forbidden,
    problem === 'missing'
      ? 'Unauthorized: connection_init needs a payload such as {"Authorization":"Bearer TOKEN"}'
      : `Unauthorized: ${tokenProblems[problem]}`,
  );

/**
 * The value of the `Authorization` header for each operation: that of the request for the socket, or the one of the same
 * name in the payload of `connection_init`, since browsers cannot send the header.
 * @throws {CloseSocket} if both are there and differ.
 */
export function authorizationOf(
  { request: { headers } }: Exchange,
  payload: Readonly<Record<string, unknown>> | null | undefined,
): string | undefined {
  const [, value] =
    Object.entries(payload ?? {}).find(([name]) => name.toLowerCase() === 'authorization') ?? [];
  const given = value == null ? undefined : String(value);
  const { authorization = given } = headers;
  if (given !== undefined && given !== authorization)
    throw new CloseSocket(
      CloseCode.BadRequest,
      'connection_init has another token than the Authorization header',
    );
  return authorization;
}

/**
 * The viewer, whose connections are counted.
 * @throws {CloseSocket} for a client without a valid token, or with too many requests or connections.
 */
export async function authenticateSocket(
  opening: Exchange,
  authorization: string | undefined,
  {
    operations,
    connectionQuota,
  }: { readonly operations: PipelineAccess; readonly connectionQuota: UserQuota },
): Promise<Viewer> {
  const who = await operations.identify(opening.request, {
    id: `${opening.id}.0`,
    transport: 'websocket',
    authorization,
    body: Buffer.alloc(0),
  });
  if (isResponse(who)) throw new CloseSocket(closeCodes.tryAgainLater, messageIn(who.body));
  if (!who.viewer) throw unauthorized(problemOf(authorization));
  if (!connectionQuota.acquire(who.viewer.id))
    throw new CloseSocket(closeCodes.tryAgainLater, tooManyConnections(connectionQuota));
  return who.viewer;
}

/** The message of an error response. */
function messageIn(body: Buffer): string {
  const { errors = [] }: { errors?: readonly { message: string }[] } = JSON.parse(body.toString());
  return errors[0]?.message ?? messages.internal;
}
