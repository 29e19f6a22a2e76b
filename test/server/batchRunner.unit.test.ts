/** How the parts of a batch are run. */

import { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { expect, it, vi } from 'vitest';
import { openExchange } from '../../src/http/exchange.ts';
import { jsonResponse } from '../../src/http/response.ts';
import type { Task } from '../../src/http/task.ts';
import { runBatch } from '../../src/server/batchRunner.ts';

function exchangeFor() {
  const failed = vi.fn();
  // As much of a request and its response as is looked at.
  const request = { headers: {}, url: '/graphql' } as IncomingMessage;
  const response = new EventEmitter() as ServerResponse;
  return { exchange: openExchange(request, response, { failed, ended: () => {} }), failed };
}

/** A task that is known by its name. */
const taskOf = (name: string): Task => ({
  cacheKey: name,
  prepare: () => {
    throw new Error('not asked for');
  },
});
const responseOf = (name: string) => jsonResponse(200, JSON.stringify(name));

it('what has to be in order waits for all before it, and all behind it wait; the others run beside each other', async () => {
  const events: string[] = [];
  const parts = ['a', 'b', 'M', 'N', 'c', 'd'].map((name) => ({
    isInOrder: name === name.toUpperCase(),
    task: taskOf(name),
  }));
  const responses = await runBatch(exchangeFor().exchange, parts, async ({ cacheKey: name = '' }) => {
    events.push(`+${name}`);
    // The first of two takes longer.
    for (let turn = name === 'a' || name === 'c' ? 4 : 2; turn > 0; turn--) await Promise.resolve();
    events.push(`-${name}`);
    return responseOf(name);
  });
  expect(events.join(' ')).toBe('+a +b -b -a +M -M +N -N +c +d -d -c');
  expect(responses).toEqual(['a', 'b', 'M', 'N', 'c', 'd'].map(responseOf));
});

it('what fails has a masked error in its place, and is reported', async () => {
  const { exchange, failed } = exchangeFor();
  const failure = new Error('secret');
  const parts = ['a', 'M', 'b'].map((name) => ({ isInOrder: name === 'M', task: taskOf(name) }));
  const responses = await runBatch(exchange, parts, async ({ cacheKey: name = '' }) => {
    if (name !== 'b') throw failure;
    return responseOf(name);
  });
  const masked =
    '{"errors":[{"message":"Internal server error","extensions":{"code":"INTERNAL_SERVER_ERROR"}}]}';
  expect(responses.map(({ body }) => body.toString())).toEqual([masked, masked, '"b"']);
  expect(failed.mock.calls).toEqual([
    [exchange, failure],
    [exchange, failure],
  ]);
});

it('all of them may wait for the client to leave', async () => {
  const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
  const { exchange } = exchangeFor();
  const parts = Array.from({ length: 10 }, (_, index) => ({ isInOrder: false, task: taskOf(String(index)) }));
  await runBatch(exchange, parts, async () => {
    exchange.response.once('close', () => {});
    return responseOf('x');
  });
  expect(warned).not.toHaveBeenCalled();
  warned.mockRestore();
});
