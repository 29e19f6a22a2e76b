import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createFairQueue, type Waiting } from '../../src/http/fairQueue.ts';

function open(...names: readonly string[]) {
  const queue = createFairQueue<Waiting & { name: string }>();
  for (const name of names) queue.add({ key: name.charAt(0), name, size: 1 });
  const all = (take: () => { name: string } | undefined) => {
    const taken: string[] = [];
    for (let entry = take(); entry; entry = take()) taken.push(entry.name);
    return taken;
  };
  return { queue, all };
}

describe('the fair queue', () => {
  it('serves the clients in turn, however many requests each has', () => {
    const { queue, all } = open('a1', 'a2', 'a3', 'b1', 'c1', 'b2');
    expect(all(() => queue.take())).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3']);
    expect(queue.length).toBe(0);
  });

  it('has a client that comes later wait for at most one turn of each other client', () => {
    const { queue } = open('a1', 'a2', 'a3', 'b1', 'b2');
    expect(queue.take()?.name).toBe('a1');
    queue.add({ key: 'c', name: 'c1', size: 1 });
    expect([queue.take()?.name, queue.take()?.name, queue.take()?.name]).toEqual(['b1', 'a2', 'c1']);
  });

  it('skips a client that may not be served now, which keeps its place', () => {
    const { queue } = open('a1', 'a2', 'b1', 'b2');
    expect(queue.take((key) => key !== 'a')?.name).toBe('b1');
    expect(queue.take((key) => key === 'c')).toBeUndefined();
    expect([queue.clients, queue.has('a'), queue.has('c')]).toEqual([2, true, false]);
    expect([queue.take()?.name, queue.take()?.name]).toEqual(['a1', 'b2']);
  });

  it('drops the newest entry of the client with the most entries, of which a batch is one, whatever its size', () => {
    const { queue, all } = open('a1', 'a2', 'b1');
    queue.add({ key: 'c', name: 'c1', size: 3 });
    expect([queue.length, queue.entries]).toEqual([6, 4]);
    expect(queue.drop(() => queue.entries > 3).map(({ name }) => name)).toEqual(['a2']);
    expect(queue.drop(() => true).map(({ name }) => name)).toEqual(['c1', 'b1']);
    expect(all(() => queue.take())).toEqual(['a1']);
  });

  it('tells whether a client would have the most entries with one more', () => {
    const { queue } = open('a1', 'a2', 'b1');
    expect(['a', 'b', 'c'].map((key) => queue.wouldHaveMost({ key }))).toEqual([true, true, false]);
  });

  it('behaves like a list that is sorted at each step, for any sequence of steps', () => {
    const step = fc.oneof(
      {
        weight: 3,
        arbitrary: fc.record({ key: fc.integer({ min: 0, max: 3 }), size: fc.integer({ min: 1, max: 3 }) }),
      },
      fc.constantFrom('take' as const, 'drop' as const),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const queue = createFairQueue<Waiting & { id: number }>();
        let waiting: (Waiting & { id: number })[] = [];
        /** At which step each client was last served, or came. */
        const turns = new Map<number | string, number>();
        const turnOf = ({ key }: Waiting) => turns.get(key) ?? 0;
        const countOf = (asked: Waiting['key']) => waiting.filter(({ key }) => key === asked).length;
        steps.forEach((each, id) => {
          if (typeof each !== 'string') {
            const most = Math.max(0, ...waiting.map(({ key }) => countOf(key)));
            expect(queue.wouldHaveMost(each)).toBe(countOf(each.key) + 1 >= most);
            const entry = { ...each, id };
            if (!waiting.some(({ key }) => key === entry.key)) turns.set(entry.key, id);
            queue.add(entry);
            waiting.push(entry);
          } else if (each === 'take') {
            const [next] = [...waiting].sort(
              (one, other) => turnOf(one) - turnOf(other) || one.id - other.id,
            );
            expect(queue.take()).toBe(next);
            waiting = waiting.filter((entry) => entry !== next);
            if (next) turns.set(next.key, id);
          } else {
            const count = queue.entries;
            const [dropped, ...more] = queue.drop(() => queue.entries === count);
            expect(more).toEqual([]);
            const counts = [...turns.keys()].map(countOf);
            const own = waiting.filter(({ key }) => key === dropped?.key);
            expect(dropped).toBe(own.at(-1));
            // The last entry is never dropped.
            expect(own).toHaveLength(count > 1 ? Math.max(...counts) : 0);
            waiting = waiting.filter((entry) => entry !== dropped);
          }
          expect(queue.length).toBe(waiting.reduce((total, { size }) => total + size, 0));
          expect(queue.entries).toBe(waiting.length);
        });
      }),
    );
  });
});
