import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createConcurrency } from '../../src/database/concurrency.ts';
import { createStatementTurns, type Turns } from '../../src/http/statementTurns.ts';
import { SimulatedPool } from '../support/simulatedPool.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterEach(() => void vi.useRealTimers());

/** Two connections, on each of which a statement takes 100 ms unless told otherwise. */
function open(duration = 100) {
  const pool = new SimulatedPool(2, () => duration);
  const concurrency = createConcurrency(pool);
  const turns = createStatementTurns(concurrency);
  concurrency.onEnded(() => queueMicrotask(turns.serve));
  /** The statements in the order in which they began. The name of a statement begins with its user. */
  const begun: string[] = [];
  const askBy =
    ({ run }: Turns) =>
    (name: string) =>
      run(Number(name.charAt(0)), async () => {
        begun.push(name);
        await pool.run();
        return name;
      });
  return { pool, turns, begun, ask: askBy(turns), askLive: askBy(turns.live) };
}

describe('a statement', () => {
  it('begins at once while a connection is free', () => {
    const { turns, begun, ask } = open();
    void ask('1a');
    void ask('1b');
    expect(begun).toEqual(['1a', '1b']);
    expect(turns.users).toBe(0);
  });

  it('waits behind the other statements of its user, while those of other users are served in turn', async () => {
    const { turns, begun, ask } = open();
    const all = ['1a', '1b', '1c', '1d', '1e', '1f', '2a', '2b'].map(ask);
    expect([turns.users, turns.isWaiting(1), turns.isWaiting(3)]).toEqual([2, true, false]);
    await vi.advanceTimersByTimeAsync(100);
    expect(begun).toEqual(['1a', '1b', '1c', '2a']);
    await vi.advanceTimersByTimeAsync(300);
    expect(begun).toEqual(['1a', '1b', '1c', '2a', '1d', '2b', '1e', '1f']);
    expect(await Promise.all(all)).toEqual(['1a', '1b', '1c', '1d', '1e', '1f', '2a', '2b']);
    expect(turns.users).toBe(0);
  });

  it('of a request takes turns with those of live queries, which keep no request from being let through', async () => {
    const { turns, begun, ask, askLive } = open();
    void ask('1a');
    void ask('1b');
    for (const name of ['2l', '3l', '4l', '5l']) void askLive(name);
    expect([turns.users, turns.isWaiting(2), turns.length]).toEqual([0, false, 4]);
    for (const name of ['1c', '1d']) void ask(name);
    expect([turns.users, turns.isWaiting(1), turns.length]).toEqual([1, true, 6]);
    await vi.advanceTimersByTimeAsync(300);
    expect(begun).toEqual(['1a', '1b', '1c', '2l', '1d', '3l', '4l', '5l']);
    expect(turns.length).toBe(0);
  });

  it('begins also when a connection becomes free without an event, as after a failed attempt to connect', async () => {
    const { pool, begun, ask } = open(10_000);
    void ask('1a');
    void ask('1b');
    void ask('1c');
    vi.spyOn(pool, 'idleCount', 'get').mockReturnValue(1);
    await vi.advanceTimersByTimeAsync(5);
    expect(begun).toEqual(['1a', '1b', '1c']);
  });

  it('fails, and is never run, if it waits as long as an attempt to connect may take', async () => {
    const { begun, ask } = open(6_000);
    void ask('1a');
    void ask('1b');
    const late = expect(ask('1c')).rejects.toThrow('too long');
    await vi.advanceTimersByTimeAsync(5_000);
    await late;
    await vi.advanceTimersByTimeAsync(10_000);
    expect(begun).toEqual(['1a', '1b']);
  });
});
