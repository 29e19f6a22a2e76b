/**
 * Followed routes (docs/rest.md#polling-and-live-changes): event streams, and requests that wait for a change. The responses are those
 * of the route, made again by `schema/liveReads.ts` after each change.
 */

import { unauthorized } from '../../auth/viewer.ts';
import { messages } from '../../errors.ts';
import type { FollowParts } from '../../extensionPoints.ts';
import { longestWait } from '../../http/connections.ts';
import { errorResponse, httpErrors, restErrorResponse } from '../../http/errorResponse.ts';
import { asksForEvents } from '../../http/request.ts';
import { type HttpResponse, matches, type StreamedResponse } from '../../http/response.ts';
import type { Task } from '../../http/task.ts';
import { createTextStream } from '../../http/textStream.ts';
import type { FollowedRead } from '../../rest/handler.ts';
import { OperationFailed } from '../../schema/liveReads.ts';

/** How to respond to a client that wants to follow the route; undefined for any other request. */
export function followerOf(options: FollowParts, followed: FollowedRead): Task['follow'] {
  const { headers, method } = followed.exchange.request;
  if (asksForEvents(followed.exchange))
    // An error before the first event is a response like any other.
    return async (current) => (current.status === 200 ? streamEvents(options, followed) : current);
  const seconds = headers.prefer === undefined ? undefined : readWait(String(headers.prefer));
  if (seconds === undefined || method !== 'GET' || headers['if-none-match'] === undefined) return undefined;
  return async (current) => {
    const applied = Math.min(seconds, longestWait);
    const response = await waitForChange(options, followed, current, applied);
    // Only for a response that may be a 304.
    if (response.validator) followed.exchange.headers['Preference-Applied'] = `wait=${applied}`;
    return response;
  };
}

/** The seconds of `wait` (RFC 7240, section 4.3): of several preferences with this name, only the first counts (section 2). */
export function readWait(prefer: string): number | undefined {
  // A value may be quoted. Other quoted texts may contain anything.
  const plain = prefer.replace(/"(\d+)"/g, '$1').replace(/"[^"]*"/g, '');
  const wait = plain.split(',').find((each) => /^\s*wait\s*(?:[=;]|$)/i.test(each));
  const [, seconds] = /^[^=]*=\s*(\d+)\s*(?:;|$)/.exec(wait ?? '') ?? [];
  return seconds === undefined ? undefined : Number(seconds);
}

function begin({ live }: FollowParts, followed: FollowedRead, seen: string | undefined) {
  const { exchange, label, key } = followed;
  const responses = live.follow({ ...followed, key: `rest ${key}`, judge, seen });
  if (responses) exchange.operation = `subscription ${label}`;
  return responses;
}

/** What ends a stream is no change of the record: the route itself is not available to the viewer any more. */
const judge = ({ status }: HttpResponse) => ({
  hasFailed: status >= 500,
  isLast: status >= 400 && status < 500 && status !== 404,
});

const tooMany = (message: string) => restErrorResponse(429, message, { 'Retry-After': '1' });

function streamEvents(options: FollowParts, followed: FollowedRead): HttpResponse | StreamedResponse {
  const { 'last-event-id': lastId } = followed.exchange.request.headers;
  const responses = begin(options, followed, lastId === undefined ? undefined : String(lastId));
  if (!responses) return tooMany(options.live.tooMany);
  return {
    status: 200,
    headers: {
      'Content-Type': 'text/event-stream; charset=utf-8',
      'Cache-Control': 'no-store',
      Vary: 'Authorization, Accept',
    },
    stream: createTextStream(responses, {
      opening: ':\n\n',
      heartbeat: ':\n\n',
      write: eventOf,
      end: lastEvent,
    }),
    ended: () => void responses.return(),
  };
}

/**
 * The event with a response (HTML, section 9.2). JSON has no line breaks. The empty id of an error makes clients forget the one before:
 * when they come back, they get the current response, even if it is the one that they had before the error.
 */
const eventOf = ({ validator, body }: HttpResponse) => `id: ${validator?.etag ?? ''}\ndata: ${body}\n\n`;

/** The event for a token that has ended. After any other failure the stream breaks off, and clients open it again. */
function lastEvent(error: unknown): string {
  if (error === undefined) return ':\n\n';
  if (codeIn(error) !== 'UNAUTHENTICATED') throw error;
  return eventOf(restErrorResponse(401, messages.unauthorized));
}

const codeIn = (error: unknown) =>
  error instanceof OperationFailed ? error.errors[0]?.extensions?.code : undefined;

/** Responds as soon as the client would get something else than a 304, or with that after a time. */
async function waitForChange(
  options: FollowParts,
  followed: FollowedRead,
  current: HttpResponse,
  seconds: number,
): Promise<HttpResponse> {
  const { exchange, viewer } = followed;
  const { request, response } = exchange;
  const condition = String(request.headers['if-none-match']);
  async function hasAlready(given: HttpResponse): Promise<boolean> {
    const { validator } = await options.formFor(exchange, given);
    return validator !== undefined && matches(condition, validator.etag);
  }
  if (!(await hasAlready(current))) return current;
  const responses = begin(options, followed, current.validator?.etag);
  if (!responses) return tooMany(options.live.tooMany);
  const stop = () => void responses.return();
  const timer = setTimeout(stop, seconds * 1_000);
  // A client that has left, or has ended its side of the connection, waits no longer.
  response.once('close', stop);
  request.socket.once('end', stop);
  if (exchange.isOver || request.socket.readableEnded) stop();
  try {
    for (;;) {
      const { done, value } = await responses.next();
      if (done) break;
      if (!(await hasAlready(value))) return value;
    }
  } catch (error) {
    if (codeIn(error) === 'INTERNAL_SERVER_ERROR') return errorResponse('rest', httpErrors.internal);
  } finally {
    stop();
    clearTimeout(timer);
    response.off('close', stop);
    request.socket.off('end', stop);
  }
  return (await options.recheck(exchange, viewer)) ? current : unauthorized(exchange);
}
