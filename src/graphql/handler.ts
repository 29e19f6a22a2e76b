/** GraphQL over HTTP: GraphiQL for browsers, the fast path for what has been seen before, and Yoga for all else. */

import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import type { GraphQLSchema } from 'graphql';
import type { Viewer } from '../auth/viewer.ts';
import { messages } from '../errors.ts';
import { readBody } from '../http/body.ts';
import { asksForPage, type Exchange, isRead } from '../http/exchange.ts';
import type { HttpResponse } from '../http/response.ts';
import type { Batch, Task, Work } from '../http/task.ts';
import type { DemoTokenFor } from '../pages/demoToken.ts';
import { createBatches } from './batch.ts';
import { createDocuments } from './documents.ts';
import { createExplorer } from './explorer.ts';
import { createFastPath, fastPathType } from './fastPath.ts';
import { createPersistedOperations } from './persisted.ts';
import { openPersistedFile, type PersistedFile, type PersistedFileOptions } from './persistedFile.ts';
import { asksForCacheable } from './plainRequest.ts';
import { requestFailure } from './requestFailure.ts';
import { createSubscribe, type SubscribeOptions } from './subscribe.ts';
import type { EventStreams } from './transports/eventStreams.ts';
import { createTurns } from './turns.ts';
import { createGraphqlYoga, type YogaOptions } from './yoga.ts';
import { createYogaWork, type YogaWork, type YogaWorkOptions } from './yogaWork.ts';

/**
 * The media type of a POST (GraphQL over HTTP, section 5.1). A form on another site cannot send it: before a request of
 * this type a browser asks by a CORS preflight.
 */
const postType = /^application\/json *(;|$)/i;

export interface GraphqlOptions
  extends Omit<YogaOptions, 'documents' | 'persisted' | 'subscribe'>,
    Pick<PersistedFileOptions, 'logger' | 'closing'> {
  /** What tells of a viewer's changes, and the version of their data: see `SubscribeOptions`. */
  changes: Pick<SubscribeOptions, 'follow' | 'versions'>;
  /** Gives the token that GraphiQL asks with. */
  demoTokenFor: DemoTokenFor;
  readonly isValid: YogaWorkOptions['isValid'];
  readonly eventStreams: EventStreams;
  /** What is served, if it is not the gateway's own schema. */
  readonly schema?: GraphQLSchema | undefined;
}

type ReadRequest = HttpResponse | Task | Batch;

export type GraphqlHandler = (
  exchange: Exchange,
  viewer: Viewer | null,
) => ReadRequest | Promise<ReadRequest>;

export interface GraphqlApi {
  readonly graphql: GraphqlHandler;
  readonly persistedFile: PersistedFile;
}

/** @throws {SetupError} when the persisted operations cannot be used. */
export function createGraphqlHandler(options: GraphqlOptions): GraphqlApi {
  const { config, createContext, isValid, eventStreams, schema } = options;
  const documents = createDocuments(config, schema);
  const file = openPersistedFile({ ...options, documents });
  const persisted = createPersistedOperations({ config, documents, file });
  const subscribe = createSubscribe({ ...options.changes, createContext });
  const yoga = createGraphqlYoga({ ...options, documents, persisted, subscribe });
  const yogaWork = createYogaWork(yoga, { maxSubscriptions: config.MAX_SUBSCRIPTIONS, isValid });
  const fastPath = createFastPath({ documents, persisted, yogaWork, createContext });
  const explorer = config.GRAPHIQL === 'on' ? createExplorer(options.demoTokenFor) : undefined;
  const anonymousWork = createAnonymousWork(yogaWork);

  function taskOfRead(exchange: Exchange, viewer: Viewer | null): Task {
    const { request, target } = exchange;
    if (!viewer) return { cacheKey: undefined, prepare: () => anonymousWork(exchange, undefined) };
    return {
      cacheKey: `GET ${persisted.generation} ${request.headers.accept} ${target}`,
      prepare: () =>
        asksForCacheable(target, documents, persisted, viewer)
          ? yogaWork.read(exchange, viewer)
          : yogaWork.handle(exchange, undefined, viewer),
    };
  }

  /** @param accept the media type of the response, where that is not for the client to choose. */
  function taskOfPost(exchange: Exchange, body: Buffer, viewer: Viewer | null, accept?: string): Task {
    if (!viewer) return { cacheKey: undefined, prepare: () => anonymousWork(exchange, body) };
    const type = accept ?? fastPathType(exchange.request);
    return {
      // Latin-1 maps each byte to a character of its own, and is the fastest way to a string that stands for the bytes.
      cacheKey:
        type === undefined ? undefined : `POST ${persisted.generation} ${type} ${body.toString('latin1')}`,
      prepare() {
        const fast = type !== undefined ? fastPath(exchange, { body, type, viewer }) : undefined;
        return fast ?? yogaWork.handle(exchange, body, viewer, accept);
      },
    };
  }

  const batchOf = createBatches({ config, documents, persisted, taskOf: taskOfPost });

  /** A request that is no read, or the response to one whose body cannot be read. */
  async function readOther(exchange: Exchange, viewer: Viewer | null): Promise<ReadRequest> {
    const body = await bodyOf(exchange.request, config.MAX_BODY_KB);
    if (!Buffer.isBuffer(body)) return body;
    const createTask = () => taskOfPost(exchange, body, viewer);
    return batchOf(exchange, body, viewer) ?? eventStreams.attach(exchange, viewer, body, createTask);
  }

  const graphql: GraphqlHandler = (exchange, viewer) => {
    const { message } = exchange;
    if (message) return taskOfPost(exchange, message.body, viewer);
    if (explorer && asksForPage(exchange)) return explorer(exchange);
    const ofStream = eventStreams.handle(exchange, viewer);
    if (ofStream) return ofStream;
    return isRead(exchange) ? taskOfRead(exchange, viewer) : readOther(exchange, viewer);
  };
  return { graphql, persistedFile: file };
}

/** Everything else gets its turn between two questions of anonymous clients, which wait for each other. */
function createAnonymousWork(yogaWork: YogaWork) {
  const inTurn = createTurns<'anonymous'>(() => setImmediate());
  return (exchange: Exchange, body: Buffer | undefined): Work => {
    const { run, ...work } = yogaWork.handle(exchange, body, null);
    return { ...work, run: () => inTurn('anonymous', run) };
  };
}

/** The body of a request that is no read, or the response to one that cannot be read. */
async function bodyOf(request: IncomingMessage, maxKilobytes: number): Promise<Buffer | HttpResponse> {
  if (request.method === 'POST' && !postType.test(request.headers['content-type'] ?? ''))
    return requestFailure(415, 'A POST takes a body of the type application/json', { Connection: 'close' });
  const body = await readBody(request, maxKilobytes * 1024);
  if (!body) {
    const tooLarge = `The request body is larger than ${maxKilobytes} KiB, the most that is allowed`;
    return requestFailure(413, tooLarge, { Connection: 'close' });
  }
  return isUtf8(body) ? body : requestFailure(400, messages.bodyNotUtf8);
}
