import { PassThrough } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { readAtIntervals } from '../../../src/database/feed/readAtIntervals.ts';

it.each([
  { title: 'small pieces are read with pauses', bytes: 3_000, times: 5, paused: true },
  { title: 'a few bytes are read at once', bytes: 30, times: 5, paused: false },
  { title: 'a large transaction is read without a pause', bytes: 65_536, times: 200, paused: false },
])('$title', async ({ bytes, times, paused }) => {
  const stream = new PassThrough();
  let pauses = 0;
  stream.on('pause', () => pauses++);
  readAtIntervals(stream);
  for (let time = 0; time < times; time++) {
    stream.write(Buffer.alloc(bytes));
    await turn();
  }
  expect(pauses > 0).toBe(paused);
});

it('what came during a pause is read after it', async () => {
  const stream = new PassThrough();
  let read = 0;
  stream.on('data', (data: Buffer) => {
    read += data.length;
  });
  readAtIntervals(stream);
  for (let time = 0; time < 10; time++) {
    stream.write(Buffer.alloc(3_000));
    await turn();
  }
  stream.end();
  await expect.poll(() => [read, stream.readableEnded]).toEqual([30_000, true]);
});
