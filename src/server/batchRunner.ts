/** Runs the parts of a batch: those that have to be in order one after the other, and the others beside each other. */

import { errorResponse, httpErrors } from '../http/errorResponse.ts';
import type { Exchange } from '../http/exchange.ts';
import { type HttpResponse, isResponse, type StreamedResponse } from '../http/response.ts';
import type { BatchPart, Task } from '../http/task.ts';

/**
 * @param run what runs a part as if it were alone.
 * @returns the responses in the order of the parts. One that fails has an error in its place.
 */
export async function runBatch(
  exchange: Exchange,
  parts: readonly BatchPart[],
  run: (task: Task) => Promise<HttpResponse | StreamedResponse>,
): Promise<HttpResponse[]> {
  // Each part waits for the client to leave.
  exchange.response.setMaxListeners(exchange.response.getMaxListeners() + parts.length);

  async function respond(task: Task | HttpResponse): Promise<HttpResponse> {
    if (isResponse(task)) return task;
    try {
      const response = await run(task);
      if ('stream' in response) throw new Error('a part of a batch cannot be a stream');
      return response;
    } catch (error) {
      exchange.report(error);
      return errorResponse(exchange.endpoint, httpErrors.internal);
    }
  }

  const responses: Promise<HttpResponse>[] = [];
  for (const { task, isInOrder } of parts) {
    if (isInOrder) await Promise.all(responses);
    const response = respond(task);
    if (isInOrder) await response;
    responses.push(response);
  }
  const all = await Promise.all(responses);
  // Some may have been there and others not.
  exchange.cache = undefined;
  return all;
}
