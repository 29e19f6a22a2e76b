import { type IncomingMessage, ServerResponse } from 'node:http';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { type Exchange, openExchange } from '../../src/http/exchange.ts';
import { createUnderway } from '../../src/http/underway.ts';
import { nobodyListens } from '../support/exchanges.ts';

const open = () => {
  // The parts of a request that are read.
  const incoming = { headers: {}, url: '/' } as IncomingMessage;
  return openExchange(incoming, new ServerResponse(incoming), nobodyListens);
};

it('the exchanges under way are those that were added and not removed, in whatever order they end', () => {
  const underway = createUnderway();
  const exchanges = Array.from({ length: 7 }, open);
  exchanges.forEach(underway.add);
  const expected = new Set(exchanges);
  for (const index of [2, 6, 0, 0, 5, 1, 4, 3]) {
    const [exchange] = exchanges.slice(index);
    if (!exchange) throw new Error('there is none');
    underway.remove(exchange);
    expected.delete(exchange);
    expect(new Set(underway)).toEqual(expected);
  }
  const [again] = exchanges;
  if (again) underway.add(again);
  expect([...underway]).toEqual([again]);
});

it('exchanges that are over do not outlive a collection of the young generation, also after a pause', () => {
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  const underway = createUnderway();
  const concurrent: Exchange[] = [];
  function run(count: number): void {
    for (let number = 0; number < count; number++) {
      // The fields that are read, and half a kilobyte.
      const exchange = { position: -1, content: new Array(64).fill(number) } as unknown as Exchange;
      underway.add(exchange);
      concurrent.push(exchange);
      const over = concurrent.length > 32 ? concurrent.shift() : undefined;
      if (over) underway.remove(over);
    }
    for (const exchange of concurrent.splice(0)) underway.remove(exchange);
  }
  const oldBytes = () =>
    getHeapSpaceStatistics().find(({ space_name: name }) => name === 'old_space')?.space_used_size ??
    Number.NaN;
  run(1_000);
  collect();
  const before = oldBytes();
  run(100_000);
  expect(oldBytes() - before).toBeLessThan(5_000_000);
});
