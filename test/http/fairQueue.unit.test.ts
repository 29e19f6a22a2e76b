import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createFairQueue, type Waiting } from '../../src/http/fairQueue.ts';

function open(...names: readonly string[]) {
  const line = createFairQueue<Waiting & { name: string }>();
  for (const name of names) line.add({ key: name.charAt(0), name, size: 1 });
  const all = (take: () => { name: string } | undefined) => {
    const taken: string[] = [];
    for (let entry = take(); entry; entry = take()) taken.push(entry.name);
    return taken;
  };
  return { line, all };
}

describe('the line', () => {
  it('serves everybody in turn, whoever has most', () => {
    const { line, all } = open('a1', 'a2', 'a3', 'b1', 'c1', 'b2');
    expect(all(() => line.take())).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3']);
    expect(line.length).toBe(0);
  });

  it('has who comes later wait no longer than one turn of each of the others', () => {
    const { line } = open('a1', 'a2', 'a3', 'b1', 'b2');
    expect(line.take()?.name).toBe('a1');
    line.add({ key: 'c', name: 'c1', size: 1 });
    expect([line.take()?.name, line.take()?.name, line.take()?.name]).toEqual(['b1', 'a2', 'c1']);
  });

  it('passes over who may not have their turn, who keeps their place', () => {
    const { line } = open('a1', 'a2', 'b1', 'b2');
    expect(line.take((key) => key !== 'a')?.name).toBe('b1');
    expect(line.take((key) => key === 'c')).toBeUndefined();
    expect([line.clients, line.has('a'), line.has('c')]).toEqual([2, true, false]);
    expect([line.take()?.name, line.take()?.name]).toEqual(['a1', 'b2']);
  });

  it('drops the newest of whoever has most, of which a batch is one, whatever it counts as', () => {
    const { line, all } = open('a1', 'a2', 'b1');
    line.add({ key: 'c', name: 'c1', size: 3 });
    expect([line.length, line.entries]).toEqual([6, 4]);
    expect(line.drop(() => line.entries > 3).map(({ name }) => name)).toEqual(['a2']);
    expect(line.drop(() => true).map(({ name }) => name)).toEqual(['c1', 'b1']);
    expect(all(() => line.take())).toEqual(['a1']);
  });

  it('knows who would have most', () => {
    const { line } = open('a1', 'a2', 'b1');
    expect(['a', 'b', 'c'].map((key) => line.wouldHaveMost({ key }))).toEqual([true, true, false]);
  });

  it('does what a list would do that is sorted each time, whatever comes', () => {
    const step = fc.oneof(
      {
        weight: 3,
        arbitrary: fc.record({ key: fc.integer({ min: 0, max: 3 }), size: fc.integer({ min: 1, max: 3 }) }),
      },
      fc.constantFrom('take' as const, 'drop' as const),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const line = createFairQueue<Waiting & { id: number }>();
        let waiting: (Waiting & { id: number })[] = [];
        /** When each last had their turn, or came. */
        const turns = new Map<number | string, number>();
        const turnOf = ({ key }: Waiting) => turns.get(key) ?? 0;
        const countOf = (asked: Waiting['key']) => waiting.filter(({ key }) => key === asked).length;
        steps.forEach((each, id) => {
          if (typeof each !== 'string') {
            const most = Math.max(0, ...waiting.map(({ key }) => countOf(key)));
            expect(line.wouldHaveMost(each)).toBe(countOf(each.key) + 1 >= most);
            const entry = { ...each, id };
            if (!waiting.some(({ key }) => key === entry.key)) turns.set(entry.key, id);
            line.add(entry);
            waiting.push(entry);
          } else if (each === 'take') {
            const [next] = [...waiting].sort(
              (one, other) => turnOf(one) - turnOf(other) || one.id - other.id,
            );
            expect(line.take()).toBe(next);
            waiting = waiting.filter((entry) => entry !== next);
            if (next) turns.set(next.key, id);
          } else {
            const count = line.entries;
            const [dropped, ...more] = line.drop(() => line.entries === count);
            expect(more).toEqual([]);
            const counts = [...turns.keys()].map(countOf);
            const own = waiting.filter(({ key }) => key === dropped?.key);
            expect(dropped).toBe(own.at(-1));
            // What waits alone stays.
            expect(own).toHaveLength(count > 1 ? Math.max(...counts) : 0);
            waiting = waiting.filter((entry) => entry !== dropped);
          }
          expect(line.length).toBe(waiting.reduce((total, { size }) => total + size, 0));
          expect(line.entries).toBe(waiting.length);
        });
      }),
    );
  });
});
