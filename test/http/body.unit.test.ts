import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import { expect, it, vi } from 'vitest';
import { isEncoded, readBody } from '../../src/http/body.ts';

/** The parts of a request that readBody uses. */
function open(headers: Record<string, string> = {}) {
  const stream = new PassThrough();
  const request = Object.assign(stream, { headers }) as unknown as IncomingMessage;
  return { stream, read: (limit: number) => readBody(request, limit) };
}

it.each([
  ['in several pieces', ['a', 'bc', 'd']],
  ['as long as the limit', ['ab', 'cdé']],
])('returns the whole body: %s', async (_, pieces) => {
  const { stream, read } = open({ 'content-length': '6' });
  const reading = read(6);
  for (const piece of pieces) stream.write(piece);
  stream.end();
  expect((await reading)?.toString()).toBe(pieces.join(''));
});

it.each([
  ['in several pieces', ['abcd', 'efg']],
  ['counted in bytes', ['abcd', '…']],
])(
  'returns undefined and stops reading if a body without an announced length exceeds the limit: %s',
  async (_, pieces) => {
    const { stream, read } = open();
    const reading = read(6);
    for (const piece of pieces) stream.write(piece);
    expect(await reading).toBeUndefined();
    expect(stream.isPaused()).toBe(true);
  },
);

it('reads nothing of a body whose announced length exceeds the limit', async () => {
  const { stream, read } = open({ 'content-length': '7' });
  expect(await read(6)).toBeUndefined();
  expect(stream.listenerCount('data')).toBe(0);
});

it('never settles if the client closes the connection', async () => {
  const { stream, read } = open();
  const settled = vi.fn();
  read(6).then(settled, settled);
  stream.write('abc');
  stream.destroy(new Error('aborted'));
  await new Promise((settle) => stream.once('close', settle));
  expect(settled).not.toHaveBeenCalled();
});

it.each([
  [undefined, false],
  ['identity', false],
  ['Identity', false],
  ['gzip', true],
  ['identity, gzip', true],
])('the body of a request with the Content-Encoding %j is encoded: %s', (coding, expected) => {
  expect(isEncoded({ headers: { 'content-encoding': coding } })).toBe(expected);
});
