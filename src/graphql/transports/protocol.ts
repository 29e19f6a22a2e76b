/** graphql-ws' server, with the hooks by which the pipeline authenticates its clients and runs their operations. */

import { type FormattedExecutionResult, GraphQLSchema, parse } from 'graphql';
import { CloseCode, type ConnectionInitMessage, makeServer, type Server } from 'graphql-ws';
import { problemOf, type Viewer } from '../../auth/viewer.ts';
import { type TokenProblem, tokenProblems } from '../../errors.ts';
import { isResponse } from '../../http/response.ts';
import type { UserQuota } from '../userQuota.ts';
import { endingErrors } from './framing.ts';
import { OperationFailed, type PipelineAccess } from './operations.ts';
import { resultsOf } from './socketOperation.ts';
import { type Connection, closeCodes } from './webSocket.ts';

export interface ProtocolOptions {
  readonly operations: PipelineAccess;
  /** How many sockets each user may have. */
  readonly connectionQuota: UserQuota;
  /** Called when a client is authenticated. */
  onKnown(connection: Connection): void;
}

/** How long, in milliseconds, the gateway waits for `connection_init`. */
const longestInit = 5_000;

type InitPayload = ConnectionInitMessage['payload'];

/**
 * graphql-ws looks into the document only to tell subscriptions from other operations, which here makes no difference: the
 * pipeline reads the client's own document.
 */
const anyOperation = { schema: new GraphQLSchema({}), document: parse('{ __typename }') };

export function createProtocol(options: ProtocolOptions): Server<Connection> {
  const { operations } = options;
  return makeServer<InitPayload, Connection>({
    connectionInitWaitTimeout: longestInit,

    async onConnect({ connectionParams, extra: connection }) {
      const viewer = await admit(connection, connectionParams, options);
      if (!viewer) return false;
      connection.onClosed(operations.watch(viewer, () => rejectToken(connection, 'invalid')));
      return { requestId: connection.opening.id };
    },

    onSubscribe: () => anyOperation,
    // The results come from the next hook, which is given what the client has sent.
    execute: () => ({}),
    onOperation({ connectionParams, extra: connection }, _id, payload) {
      const authorization = authorizationOf(connection, connectionParams);
      const body = Buffer.from(JSON.stringify(payload));
      return resultsOf(connection, (id) =>
        operations.run(connection.opening.request, { id, authorization, body }),
      );
    },

    // The errors of a result that was read from JSON are not instances of `GraphQLError`, as graphql-ws would have them.
    onNext: (_context, _id, _payload, _args, result) => result as FormattedExecutionResult,
    onError({ extra: connection }, _id, _payload, [error]) {
      const cause = error?.originalError;
      if (!(cause instanceof OperationFailed)) {
        connection.opening.report(error);
        return endingErrors('failed');
      }
      if (cause.errors.some(({ extensions }) => extensions?.code === 'UNAUTHENTICATED'))
        rejectToken(connection, 'invalid');
      return cause.errors;
    },
  });
}

function close(connection: Connection, code: number, reason: string): undefined {
  connection.close(code, reason);
}

const rejectToken = (connection: Connection, problem: TokenProblem) =>
  close(
    connection,
    CloseCode.Forbidden,
    problem === 'missing'
      ? 'Unauthorized: connection_init needs a payload such as {"Authorization":"Bearer TOKEN"}'
      : `Unauthorized: ${tokenProblems[problem]}`,
  );

/** The token in the payload of `connection_init`, for browsers, which cannot send the header. */
function tokenIn(payload: InitPayload): string | undefined {
  const [, value] =
    Object.entries(payload ?? {}).find(([name]) => name.toLowerCase() === 'authorization') ?? [];
  return value == null ? undefined : String(value);
}

/** The value of the `Authorization` header for each operation. */
const authorizationOf = ({ opening }: Connection, payload: InitPayload) =>
  opening.request.headers.authorization ?? tokenIn(payload);

/**
 * The viewer, who is counted until the socket closes. Closes the socket of a client without a valid
 * token, or with too many requests or connections, and returns undefined.
 */
async function admit(
  connection: Connection,
  payload: InitPayload,
  { operations, connectionQuota, onKnown }: ProtocolOptions,
): Promise<Viewer | undefined> {
  const authorization = authorizationOf(connection, payload);
  if ((tokenIn(payload) ?? authorization) !== authorization) {
    const reason = 'connection_init has another token than the Authorization header';
    return close(connection, CloseCode.BadRequest, reason);
  }
  const incoming = { id: connection.nextId(), authorization, body: Buffer.alloc(0) };
  const who = await operations.identify(connection.opening.request, incoming);
  if (isResponse(who)) {
    const { errors } = JSON.parse(who.body.toString());
    return close(connection, closeCodes.tryAgainLater, errors[0].message);
  }
  const { viewer } = who;
  if (!viewer) return rejectToken(connection, problemOf(authorization));
  if (!connection.isOpen()) return undefined;
  if (!connectionQuota.acquire(viewer.id)) {
    const { limit } = connectionQuota;
    const reason = `There are ${limit} WebSockets open; at most ${limit} are allowed`;
    return close(connection, closeCodes.tryAgainLater, reason);
  }
  connection.onClosed(() => connectionQuota.release(viewer.id));
  onKnown(connection);
  return viewer;
}
