/** The request of a tool call, inside the request that makes the call. */

import { type Exchange, requestWithin, restPath } from '../../http/exchange.ts';

export interface InnerRequest {
  readonly method: 'GET' | 'POST';
  readonly target: string;
  /** What its body would have; undefined for a request without a body. */
  readonly content: unknown;
}

/** Creates the exchange of a request inside another one. The client and the log see the outer exchange only. */
export function innerExchange(outer: Exchange, { method, target, content }: InnerRequest): Exchange {
  const request = requestWithin(outer.request, method, target, {
    authorization: outer.request.headers.authorization,
    accept: 'application/json',
    'content-type': content === undefined ? undefined : 'application/json',
  });
  const [path = ''] = target.split('?', 1);
  // Set even without a body: the body of the outer request has been read already.
  const message = { content, cutShort() {} };
  const endpoint = path.startsWith(`${restPath}/`) ? 'rest' : 'graphql';
  const ofExchange = { request, target, path, endpoint, message };
  return Object.create(outer, Object.getOwnPropertyDescriptors(ofExchange));
}
