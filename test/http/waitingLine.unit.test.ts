import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createWaitingLine, type Waiting } from '../../src/http/waitingLine.ts';

function open(...keys: readonly string[]) {
  const line = createWaitingLine<Waiting & { name: string }>();
  for (const [since, name] of keys.entries()) line.add({ key: name.charAt(0), name, size: 1, since });
  const all = (take: () => { name: string } | undefined) => {
    const names: string[] = [];
    for (let entry = take(); entry; entry = take()) names.push(entry.name);
    return names;
  };
  return { line, all };
}

describe('the line', () => {
  it('serves everybody in turn, whoever has most', () => {
    const { line, all } = open('a1', 'a2', 'a3', 'b1', 'c1', 'b2');
    expect(all(() => line.take(false))).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3']);
    expect(line.length).toBe(0);
  });

  it('serves the newest of who came last, and then everybody else in turn, when told to', () => {
    const { line, all } = open('a1', 'a2', 'a3', 'b1', 'c1', 'b2');
    expect(all(() => line.take(true))).toEqual(['c1', 'b2', 'a3', 'b1', 'a2', 'a1']);
  });

  it('has who comes later wait no longer than one turn of each of the others', () => {
    const { line } = open('a1', 'a2', 'a3', 'b1', 'b2');
    expect(line.take(false)?.name).toBe('a1');
    line.add({ key: 'c', name: 'c1', size: 1, since: 9 });
    expect([line.take(false)?.name, line.take(false)?.name, line.take(false)?.name]).toEqual([
      'b1',
      'a2',
      'c1',
    ]);
  });

  it('drops the oldest of whoever has most, by what they count as', () => {
    const { line, all } = open('a1', 'a2', 'b1');
    line.add({ key: 'c', name: 'c1', size: 3, since: 9 });
    expect(line.length).toBe(6);
    expect(all(() => line.drop())).toEqual(['c1', 'a1', 'a2', 'b1']);
  });

  it('drops what has waited for too long, and keeps the turns of the others', () => {
    const { line, all } = open('a1', 'b1', 'a2', 'c1', 'c2');
    expect(line.dropSince(3, 0).map(({ name }) => name)).toEqual(['a1', 'a2', 'b1']);
    expect(all(() => line.take(false))).toEqual(['c1', 'c2']);
  });

  it.each([
    { spared: 2, dropped: ['a1', 'a2', 'b1', 'b2', 'c1'], left: ['c2', 'b3'] },
    { spared: 6, dropped: ['a1', 'b1', 'b2', 'c1'], left: ['c2', 'b3', 'a2'] },
  ])('leaves to those who are next what is next, when told to: $spared', ({ spared, dropped, left }) => {
    const { line, all } = open('a1', 'b1', 'c1', 'c2', 'b2', 'b3', 'a2');
    expect(line.dropSince(9, spared).map(({ name }) => name)).toEqual(dropped);
    expect(all(() => line.take(true))).toEqual(left);
  });

  it('does what a list would do that is sorted each time, whatever comes', () => {
    const step = fc.oneof(
      {
        weight: 4,
        arbitrary: fc.record({ key: fc.integer({ min: 0, max: 3 }), size: fc.integer({ min: 1, max: 3 }) }),
      },
      fc.constantFrom('take' as const, 'drop' as const, 'dropSince' as const),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), fc.boolean(), (steps, isNewestFirst) => {
        const line = createWaitingLine<Waiting & { id: number }>();
        let waiting: (Waiting & { id: number })[] = [];
        /** When each last had their turn, or came; behind all others for those who had it and newest first. */
        const turns = new Map<number | string, number>();
        const turnOf = ({ key }: Waiting) => turns.get(key) ?? 0;
        steps.forEach((each, id) => {
          if (typeof each !== 'string') {
            const entry = { ...each, since: id, id };
            if (!waiting.some(({ key }) => key === entry.key)) turns.set(entry.key, id);
            line.add(entry);
            waiting.push(entry);
          } else if (each === 'dropSince') {
            const last = [...new Set(waiting.map(({ key }) => key))].sort(
              (one, other) => (turns.get(other) ?? 0) - (turns.get(one) ?? 0),
            );
            const spared = last
              .slice(0, id % 5)
              .flatMap((key) => waiting.filter((entry) => entry.key === key).slice(-1));
            const gone = waiting.filter((entry) => entry.since < id - 5 && !spared.includes(entry));
            expect(new Set(line.dropSince(id - 5, id % 5))).toEqual(new Set(gone));
            waiting = waiting.filter((entry) => !gone.includes(entry));
          } else if (each === 'take') {
            const order = isNewestFirst ? -1 : 1;
            const [next] = [...waiting].sort(
              (one, other) => order * (turnOf(one) - turnOf(other) || one.id - other.id),
            );
            expect(line.take(isNewestFirst)).toBe(next);
            waiting = waiting.filter((entry) => entry !== next);
            if (next) turns.set(next.key, order * id);
          } else {
            const dropped = line.drop();
            const sizes = [...turns.keys()].map((key) =>
              sizeOf(waiting.filter((entry) => entry.key === key)),
            );
            const own = waiting.filter(({ key }) => key === dropped?.key);
            expect(dropped).toBe(own[0]);
            expect(sizeOf(own)).toBe(Math.max(0, ...sizes));
            waiting = waiting.filter((entry) => entry !== dropped);
          }
          expect(line.length).toBe(sizeOf(waiting));
        });
      }),
    );
  });
});

const sizeOf = (entries: readonly Waiting[]) => entries.reduce((total, { size }) => total + size, 0);
