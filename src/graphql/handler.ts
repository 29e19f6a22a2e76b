/**
 * GraphQL over HTTP: handles requests to `/graphql`. It promises that every well-formed request for an operation, by POST or GET, is
 * executed in the one way (`execution.ts`), and that what cannot be executed gets an error that says why. Browsers get GraphiQL.
 *
 * It may be replaced by GraphQL Yoga, with `execution.ts` as its executor. What would be missing are cached responses, batches, and
 * half of the speed.
 */

import type { GraphQLSchema } from 'graphql';
import type { HasEnded, Viewer } from '../auth/viewer.ts';
import type { Config } from '../config/config.ts';
import { readText } from '../http/body.ts';
import type { Exchange } from '../http/exchange.ts';
import { asksForPage, isRead } from '../http/requestChecks.ts';
import type { HttpResponse } from '../http/response.ts';
import type { Batch, Task } from '../http/task.ts';
import type { DemoTokenFor } from '../pages/demoToken.ts';
import { readBatch } from './batch.ts';
import { createDocuments } from './documents.ts';
import { createExecution } from './execution.ts';
import { createExplorer } from './explorer.ts';
import { createPersistedOperations } from './persisted.ts';
import { openPersistedFile, type PersistedFile, type PersistedFileOptions } from './persistedFile.ts';
import { requestFailure } from './requestFailure.ts';
import { createTasks, type TasksOptions } from './tasks.ts';

/**
 * The media type of a POST (GraphQL over HTTP, section 5.1). A form on another site cannot send it: before a request of
 * this type a browser asks by a CORS preflight.
 */
const postType = /^application\/json *(;|$)/i;

const otherType = 'A POST takes a body of the type application/json';

const brace = '{'.charCodeAt(0);

export interface GraphqlOptions
  extends Omit<TasksOptions, 'execution' | 'persisted'>,
    Pick<PersistedFileOptions, 'logger' | 'closing'> {
  readonly config: Config;
  /** Gives the token that GraphiQL sends. */
  demoTokenFor: DemoTokenFor;
  readonly hasEnded: HasEnded;
  /** The schema that is served, if it is not the gateway's own. */
  readonly schema?: GraphQLSchema | undefined;
}

/** What is to be run for a request, or the response to one that cannot be read. */
type Handled = HttpResponse | Task | Batch;

export type GraphqlHandler = (exchange: Exchange, viewer: Viewer | null) => Handled | Promise<Handled>;

export interface GraphqlApi {
  readonly graphql: GraphqlHandler;
  readonly persistedFile: PersistedFile;
}

/** A client that asks for one event stream for all its operations begins with a PUT. */
const otherMethod =
  'GraphQL is asked by GET or POST. Event streams carry one operation each: graphql-sse needs singleConnection: false';

/** @throws {SetupError} when the persisted operations cannot be used. */
export function createGraphqlHandler(options: GraphqlOptions): GraphqlApi {
  const { config, hasEnded, schema } = options;
  const documents = createDocuments(config, schema);
  const persistedFile = openPersistedFile({ ...options, documents });
  const persisted = createPersistedOperations({ config, file: persistedFile });
  const execution = createExecution({ config, documents, persisted });
  const explorer = config.GRAPHIQL === 'on' ? createExplorer(options.demoTokenFor) : undefined;
  const tasks = createTasks({ ...options, execution, persisted });

  /** The work of a POST, or the response to one whose body cannot be read. */
  async function readOther(exchange: Exchange, sender: Viewer | null): Promise<Handled> {
    const began = performance.now();
    if (!postType.test(exchange.request.headers['content-type'] ?? ''))
      return requestFailure(415, otherType, { Connection: 'close' });
    const body = await readText(exchange, config.MAX_BODY_KB);
    if (!Buffer.isBuffer(body)) return body;
    const viewer = sender && (await hasEnded(sender, began)) ? null : sender;
    // Most bodies are objects, which are parsed when they are not in the cache.
    const batch = body[0] === brace ? undefined : readBatch(config, tasks, { exchange, body, viewer });
    return batch ?? tasks.of(exchange, viewer, { body });
  }

  const graphql: GraphqlHandler = (exchange, viewer) => {
    const { message } = exchange;
    if (message) return tasks.of(exchange, viewer, message);
    if (explorer && asksForPage(exchange)) return explorer(exchange);
    if (!isRead(exchange) && exchange.request.method !== 'POST')
      return requestFailure(405, otherMethod, { Allow: 'GET, HEAD, POST' });
    return isRead(exchange)
      ? tasks.of(exchange, viewer, { target: exchange.target })
      : readOther(exchange, viewer);
  };
  return { graphql, persistedFile };
}
