/** What a request brings along to Yoga, and what its plugins find out about the operation. */

import type { OperationTypeNode } from 'graphql';
import type { Plugin, YogaInitialContext } from 'graphql-yoga';
import type { Viewer } from '../auth/viewer.ts';
import type { Exchange } from '../http/exchange.ts';
import type { Context } from '../schema/context.ts';
import type { PreparedOperation, Values } from '../schema/operation.ts';
import type { CheckedDocument } from './documents.ts';
import type { Accepted } from './overHttp.ts';

/** What plugins have found out so far. */
interface Progress {
  document?: CheckedDocument;
  operation?: PreparedOperation;
  /** The variables, as the schema coerces them. */
  variables?: Values;
  /** The code of the first error of the result. */
  errorCode?: string | undefined;
  /** Ends the subscription. Called by the gateway once nothing more is sent. */
  end?: () => void;
}

/** The part of Yoga's context that comes with a request. */
export interface RequestContext {
  readonly exchange: Exchange;
  /** Null for an anonymous client, which may ask for nothing but the schema. */
  readonly viewer: Viewer | null;
  readonly accepted: Accepted;
  /** The parameters as they came, or the error of those that cannot be read. */
  readonly given: unknown;
  /** Shared by all copies of the context. */
  readonly progress: Progress;
  /** Aborted if the stream has to break off, so that its client comes back. For streams that Yoga makes. */
  readonly broken?: AbortController;
  /** The type of the operation that was sent, if it may be run. */
  readonly expected?: OperationTypeNode | undefined;
}

/** The context of plugins and resolvers. A resolver of an anonymous client has no viewer, and reads nothing but the schema. */
export type GatewayContext = YogaInitialContext & RequestContext & Context;

/** A plugin for Yoga. */
export type GatewayPlugin = Plugin<RequestContext & Context, RequestContext, Context>;
