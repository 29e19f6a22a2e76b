import { beforeEach, describe, expect, it, vi } from 'vitest';
import { createTurns, type RunInTurn } from '../../src/database/turns.ts';
import { messages } from '../../src/errors.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  vi.advanceTimersByTime(1_000);
});

/** Turns before a database, of which each statement takes 100 ms unless told otherwise. */
function open({ connections = 2, maxWaiting = 100, duration = 100 } = {}) {
  const turns = createTurns(connections, maxWaiting);
  /** The statements in the order in which they began. */
  const begun: string[] = [];
  const runBy = (run: RunInTurn, name: string) =>
    run(async () => {
      begun.push(name);
      await new Promise<void>((settle) => void setTimeout(settle, duration));
      return name;
    });
  return {
    ...turns,
    begun,
    runBy,
    /** The name of a statement begins with its user, and each is of a request of its own. */
    ask: (name: string) => runBy(turns.forRequest(name.charAt(0)), name),
    askLive: (name: string) => runBy(turns.forLiveQuery(name.charAt(0)), name),
  };
}

describe('a statement', () => {
  it('waits behind the other statements of its user, while those of other users are served in turn', async () => {
    const { figures, begun, ask } = open();
    const all = ['1a', '1b', '1c', '1d', '1e', '1f', '2a', '2b'].map(ask);
    expect(figures.waiting).toBe(6);
    await vi.advanceTimersByTimeAsync(100);
    expect(begun).toEqual(['1a', '1b', '1c', '2a']);
    await vi.advanceTimersByTimeAsync(300);
    expect(begun).toEqual(['1a', '1b', '1c', '2a', '1d', '2b', '1e', '1f']);
    expect(await Promise.all(all)).toEqual(['1a', '1b', '1c', '1d', '1e', '1f', '2a', '2b']);
    expect(figures.waiting).toBe(0);
  });

  it('of a request takes turns with those of live queries, which do not count as waiting requests', async () => {
    const { figures, begun, ask, askLive } = open();
    for (const name of ['1a', '1b']) void ask(name);
    for (const name of ['2l', '3l', '4l', '5l']) void askLive(name);
    expect(figures.waiting).toBe(0);
    for (const name of ['1c', '1d']) void ask(name);
    expect(figures.waiting).toBe(2);
    await vi.advanceTimersByTimeAsync(300);
    expect(begun).toEqual(['1a', '1b', '1c', '2l', '1d', '3l', '4l', '5l']);
  });

  it('that fails, or throws, makes room for the next', async () => {
    const { forRequest, begun, ask } = open({ connections: 1 });
    const failing = expect(
      forRequest(1)(() => {
        throw new Error('the database is away');
      }),
    ).rejects.toThrow('away');
    void ask('1a');
    await failing;
    await vi.advanceTimersByTimeAsync(0);
    expect(begun).toEqual(['1a']);
  });

  it('gets a 503, and is never run, if it waits as long as an attempt to connect may take', async () => {
    const { begun, ask, figures } = open({ duration: 6_000 });
    for (const name of ['1a', '1b']) void ask(name);
    const late = expect(ask('1c')).rejects.toMatchObject({
      message: messages.tooBusy,
      extensions: { code: 'SERVICE_UNAVAILABLE', retryAfter: 1, http: { status: 503 } },
    });
    await vi.advanceTimersByTimeAsync(5_000);
    await late;
    await vi.advanceTimersByTimeAsync(10_000);
    expect(begun).toEqual(['1a', '1b']);
    expect(figures.waiting).toBe(0);
  });
});

describe('a request', () => {
  /** Both connections are busy for a second. */
  const openBusy = (maxWaiting: number) => {
    const opened = open({ maxWaiting, duration: 1_000 });
    for (const name of ['xa', 'xb']) void opened.ask(name);
    return opened;
  };
  /** Asks whether a request may begin, which then waits with a statement. */
  const askedOf =
    ({ admit, ask }: ReturnType<typeof open>) =>
    (name: string) => {
      if (!admit(name.charAt(0))) return `${name} rejected`;
      void ask(name);
      return name;
    };

  it('counts once while any of its statements wait', async () => {
    const { forRequest, runBy, figures } = openBusy(3);
    const run = forRequest('a');
    for (const name of ['a1', 'a2', 'a3']) void runBy(run, name);
    expect(figures.waiting).toBe(1);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(figures.waiting).toBe(1);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(figures.waiting).toBe(0);
  });

  it('is rejected while as many wait as may; three times as many may for 100 ms', () => {
    const opened = openBusy(4);
    const asked = askedOf(opened);
    for (let count = 1; count <= 12; count++) expect(asked(`a${count}`)).toBe(`a${count}`);
    expect(asked('a13')).toBe('a13 rejected');
    expect(opened.figures).toMatchObject({ waiting: 12, rejected: 1 });

    const later = openBusy(4);
    const askedLater = askedOf(later);
    expect(askedLater('a1')).toBe('a1');
    vi.advanceTimersByTime(150);
    expect(['a2', 'a3', 'a4', 'a5'].map(askedLater)).toEqual(['a2', 'a3', 'a4', 'a5 rejected']);
  });

  it('of a user with less than an equal share of the queue may begin also while it is full', () => {
    const opened = openBusy(6);
    const asked = askedOf(opened);
    expect(asked('a1')).toBe('a1');
    vi.advanceTimersByTime(150);
    for (let count = 2; count <= 6; count++) expect(asked(`a${count}`)).toBe(`a${count}`);
    // Two users may have three each, and so on. After the first rejection the queue is to have three in all.
    expect(['b1', 'b2', 'b3', 'b4', 'c1'].map(asked)).toEqual(['b1', 'b2', 'b3', 'b4 rejected', 'c1']);
    expect(['c2', 'd1', 'a7'].map(asked)).toEqual(['c2 rejected', 'd1 rejected', 'a7 rejected']);
  });

  it('may begin, a second after the last was rejected, if no more than usual wait', async () => {
    const opened = open({ connections: 8, maxWaiting: 20, duration: 200 });
    const asked = askedOf(opened);
    for (let count = 0; count < 8; count++) void opened.ask('x');
    for (let count = 1; count <= 60; count++) asked(`a${count}`);
    expect(asked('a61')).toBe('a61 rejected');
    await vi.advanceTimersByTimeAsync(950);
    // The queue is short under overload, though hardly longer than half as many as there are connections.
    expect(opened.figures.waiting).toBe(28);
    expect(asked('a62')).toBe('a62 rejected');
    await vi.advanceTimersByTimeAsync(900);
    expect(opened.figures.waiting).toBe(0);
    for (let count = 0; count < 8; count++) void opened.ask('x');
    for (let count = 1; count <= 6; count++) expect(asked(`a${count}`)).toBe(`a${count}`);
    expect(asked('a7')).toBe('a7 rejected');
    await vi.advanceTimersByTimeAsync(1_050);
    for (let count = 0; count < 8; count++) void opened.ask('x');
    for (let count = 1; count <= 20; count++) expect(asked(`a${count}`)).toBe(`a${count}`);
  });
});
