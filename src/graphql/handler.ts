/**
 * Handles requests to `/graphql`: GraphiQL for browsers, the fast path for known operations, and Yoga for everything
 * else.
 */

import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import type { GraphQLSchema } from 'graphql';
import type { HasEnded, Viewer } from '../auth/viewer.ts';
import { messages } from '../errors.ts';
import { acceptsIdentityOnly, isEncoded, readBody } from '../http/body.ts';
import type { Exchange } from '../http/exchange.ts';
import { asksForPage, isRead } from '../http/requestChecks.ts';
import type { HttpResponse } from '../http/response.ts';
import type { Batch, Task } from '../http/task.ts';
import type { DemoTokenFor } from '../pages/demoToken.ts';
import { createBatches } from './batch.ts';
import { createDocuments } from './documents.ts';
import { createExplorer } from './explorer.ts';
import { createFastPath } from './fastPath.ts';
import { createPersistedOperations } from './persisted.ts';
import { openPersistedFile, type PersistedFile, type PersistedFileOptions } from './persistedFile.ts';
import { requestFailure } from './requestFailure.ts';
import { createSubscribe, type SubscribeOptions } from './subscribe.ts';
import { createTasks } from './tasks.ts';
import { createGraphqlYoga, type YogaOptions } from './yoga.ts';
import { createYogaWork, type YogaWorkOptions } from './yogaWork.ts';

/**
 * The media type of a POST (GraphQL over HTTP, section 5.1). A form on another site cannot send it: before a request of
 * this type a browser asks by a CORS preflight.
 */
const postType = /^application\/json *(;|$)/i;

export interface GraphqlOptions
  extends Omit<YogaOptions, 'documents' | 'persisted' | 'subscribe'>,
    Pick<PersistedFileOptions, 'logger' | 'closing'> {
  /** What subscriptions need. Their context need not be that of requests. */
  readonly changes: SubscribeOptions;
  /** Gives the token that GraphiQL sends. */
  demoTokenFor: DemoTokenFor;
  readonly isValid: YogaWorkOptions['isValid'];
  readonly hasEnded: HasEnded;
  /** The schema that is served, if it is not the gateway's own. */
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

/** A client that asks for one event stream for all its operations begins with a PUT. */
const otherMethod =
  'GraphQL is asked by GET or POST. Event streams carry one operation each: graphql-sse needs singleConnection: false';

/** @throws {SetupError} when the persisted operations cannot be used. */
export function createGraphqlHandler(options: GraphqlOptions): GraphqlApi {
  const { config, createContext, isValid, hasEnded, closing, schema } = options;
  const documents = createDocuments(config, schema);
  const file = openPersistedFile({ ...options, documents });
  const persisted = createPersistedOperations({ config, documents, file });
  const subscribe = createSubscribe(options.changes);
  const yoga = createGraphqlYoga({ ...options, documents, persisted, subscribe });
  const yogaWork = createYogaWork(yoga, { maxSubscriptions: config.MAX_SUBSCRIPTIONS, isValid, closing });
  const fastPath = createFastPath({ documents, persisted, yogaWork, createContext });
  const explorer = config.GRAPHIQL === 'on' ? createExplorer(options.demoTokenFor) : undefined;
  const tasks = createTasks({ documents, persisted, fastPath, yogaWork });
  const batchOf = createBatches({ config, documents, persisted, taskOf: tasks.ofTypedBody });

  /** The work of a POST, or the response to one whose body cannot be read. */
  async function readOther(exchange: Exchange, sender: Viewer | null): Promise<ReadRequest> {
    const began = performance.now();
    const body = await bodyOf(exchange.request, config.MAX_BODY_KB);
    if (!Buffer.isBuffer(body)) return body;
    const viewer = sender && (await hasEnded(sender, began)) ? null : sender;
    return batchOf(exchange, body, viewer) ?? tasks.ofBody(exchange, body, viewer);
  }

  const graphql: GraphqlHandler = (exchange, viewer) => {
    const { message } = exchange;
    if (message) return tasks.ofBody(exchange, message.body, viewer);
    if (explorer && asksForPage(exchange)) return explorer(exchange);
    if (!isRead(exchange) && exchange.request.method !== 'POST')
      return requestFailure(405, otherMethod, { Allow: 'GET, HEAD, POST' });
    return isRead(exchange) ? tasks.ofRead(exchange, viewer) : readOther(exchange, viewer);
  };
  return { graphql, persistedFile: file };
}

/** The body of a POST, or the response to one whose body cannot be read. */
async function bodyOf(request: IncomingMessage, maxKilobytes: number): Promise<Buffer | HttpResponse> {
  if (!postType.test(request.headers['content-type'] ?? ''))
    return requestFailure(415, 'A POST takes a body of the type application/json', { Connection: 'close' });
  if (isEncoded(request)) return requestFailure(415, messages.bodyEncoded, acceptsIdentityOnly);
  const body = await readBody(request, maxKilobytes * 1024);
  if (!body) {
    const tooLarge = `The request body is larger than ${maxKilobytes} KiB, the most that is allowed`;
    return requestFailure(413, tooLarge, { Connection: 'close' });
  }
  return isUtf8(body) ? body : requestFailure(400, messages.bodyNotUtf8);
}
