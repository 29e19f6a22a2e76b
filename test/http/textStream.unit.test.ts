import { expect, it, vi } from 'vitest';
import { createTextStream } from '../../src/http/textStream.ts';

it('a stream sends heartbeats to a client that has read all, and none after its end', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  let settle = (_: IteratorResult<string>) => {};
  const next = () => new Promise<IteratorResult<string>>((resolve) => (settle = resolve));
  const format = { opening: 'opening', heartbeat: 'beat', write: (text: string) => text, end: () => 'end' };
  const reader = createTextStream({ next }, format).getReader();
  const read = async () => new TextDecoder().decode((await reader.read()).value);
  vi.advanceTimersByTime(36_000);
  expect(await read()).toBe('opening');
  for (let times = 0; times < 2; times++) {
    const beat = read();
    vi.advanceTimersByTime(12_000);
    expect(await beat).toBe('beat');
  }
  settle({ value: 'result' });
  expect(await read()).toBe('result');
  // Once the next result is asked for.
  await new Promise(setImmediate);
  settle({ done: true, value: undefined });
  expect([await read(), await read()]).toEqual(['end', '']);
  expect(vi.getTimerCount()).toBe(0);
});
