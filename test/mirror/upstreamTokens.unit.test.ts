/** Tokens of the upstream that clients bring, over an upstream that is a function, and a clock that the test sets. */

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  type Credential,
  createUpstreamTokens,
  type TokenCheck,
  type UpstreamTokens,
} from '../../src/mirror/upstreamTokens.ts';

const valid: TokenCheck = { kind: 'valid', userId: 1 };
const invalid: TokenCheck = { kind: 'invalid' };
const away: TokenCheck = { kind: 'away', retryAfter: undefined };
const ttl = 60_000;
const idle = 600_000;

const check = vi.fn<(token: string) => Promise<TokenCheck>>();
const onBegin = vi.fn();
const onEnd = vi.fn();
const onOther = vi.fn();
let tokens: UpstreamTokens;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
  vi.spyOn(performance, 'now').mockImplementation(() => Date.now());
  for (const mock of [check, onBegin, onEnd, onOther]) mock.mockReset();
  check.mockResolvedValue(valid);
  tokens = createUpstreamTokens({ check, onBegin, onEnd, onOther, ttl, idle });
});
afterEach(() => {
  tokens.close();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const authenticate = (token: string, address = 'one') => tokens.authenticate(`Bearer ${token}`, address);

/** The credential of a token that is valid. */
async function meet(token = 'alice'): Promise<Credential> {
  const authentication = await authenticate(token);
  const viewer = 'viewer' in authentication ? authentication.viewer : undefined;
  const credential = viewer && tokens.credentialOf(viewer);
  if (!credential) throw new Error('the token stands for nobody');
  return credential;
}

const never = () => new Promise<TokenCheck>(() => {});

describe('a token that stands for somebody', () => {
  it('is checked again after a while, and not before', async () => {
    const { viewer } = await meet();
    expect(tokens.known('Bearer alice')).toBe(viewer);
    vi.advanceTimersByTime(ttl - 1);
    expect(await authenticate('alice')).toEqual({ viewer });
    expect(check).toHaveBeenCalledTimes(1);
    vi.advanceTimersByTime(1);
    expect(tokens.known('Bearer alice')).toBeUndefined();
    expect(await authenticate('alice')).toEqual({ viewer });
    expect(check).toHaveBeenCalledTimes(2);
  });

  it('is checked by one request at a time and is valid meanwhile, however long the upstream takes', async () => {
    const { viewer } = await meet();
    check.mockImplementation(never);
    vi.advanceTimersByTime(ttl);
    const began = process.uptime();
    const waiting = [authenticate('alice'), authenticate('alice')];
    // A check that is asked for long after the first began.
    vi.advanceTimersByTime(ttl);
    waiting.push(authenticate('alice'));
    expect(await Promise.all(waiting)).toEqual([{ viewer }, { viewer }, { viewer }]);
    expect(process.uptime() - began).toBeLessThan(5);
    expect(check).toHaveBeenCalledTimes(2);
  });

  it('is valid while nobody can say that it is not, for an hour', async () => {
    const { viewer } = await meet();
    check.mockResolvedValue(away);
    for (let minute = 1; minute < 60; minute++) {
      vi.advanceTimersByTime(60_000);
      expect(await authenticate('alice')).toEqual({ viewer });
    }
    vi.advanceTimersByTime(60_000);
    expect(await authenticate('alice')).toEqual({ error: 'upstreamAway', retryAfter: 5 });
    expect(await tokens.isValid(viewer)).toBe(false);
    check.mockResolvedValue(valid);
    vi.advanceTimersByTime(5_000);
    expect(await authenticate('alice')).toEqual({ viewer });
  });

  it('has requests come again in a second at the least, however long its check hangs', async () => {
    await meet();
    check.mockResolvedValue(away);
    for (let minute = 1; minute <= 60; minute++) {
      vi.advanceTimersByTime(60_000);
      await authenticate('alice');
    }
    check.mockImplementation(never);
    for (const seconds of [5, 4, 3, 9]) {
      vi.advanceTimersByTime(seconds * 1_000);
      const authentication = await authenticate('alice');
      expect('retryAfter' in authentication && authentication.retryAfter).toBeGreaterThanOrEqual(1);
    }
  });

  it('is asked about once for all doubts, and again until the upstream can say', async () => {
    const credential = await meet();
    check.mockResolvedValue({ kind: 'away', retryAfter: 60 });
    for (let times = 0; times < 100; times++) tokens.tell(credential, 'doubtful', Date.now());
    await vi.advanceTimersByTimeAsync(5_000);
    expect(check).toHaveBeenCalledTimes(2);
    check.mockResolvedValue(invalid);
    await vi.advanceTimersByTimeAsync(59_000);
    expect(check).toHaveBeenCalledTimes(2);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(check).toHaveBeenCalledTimes(3);
    expect(credential.viewer.ended?.aborted).toBe(true);
    expect(vi.getTimerCount()).toBe(1);
  });

  it('is not checked again for as long as the upstream asks for, and is valid meanwhile', async () => {
    const { viewer } = await meet();
    check.mockResolvedValue({ kind: 'away', retryAfter: 600 });
    vi.advanceTimersByTime(ttl);
    for (let second = 0; second < 600; second += 10) {
      expect(await authenticate('alice')).toEqual({ viewer });
      vi.advanceTimersByTime(10_000);
    }
    expect(check).toHaveBeenCalledTimes(2);
    await authenticate('alice');
    expect(check).toHaveBeenCalledTimes(3);
  });

  it('ends with what was opened with it as soon as the upstream refuses it for anything and then altogether', async () => {
    const credential = await meet();
    check.mockResolvedValue(invalid);
    // Nobody asks with it after that.
    tokens.tell(credential, 'doubtful', Date.now());
    tokens.tell(credential, 'doubtful', Date.now());
    await vi.advanceTimersByTimeAsync(5_000);
    expect(credential.viewer.ended?.aborted).toBe(true);
    expect(onEnd).toHaveBeenCalledTimes(1);
    expect(tokens.credentialOf(credential.viewer)).toBeUndefined();
    expect(await tokens.isValid(credential.viewer)).toBe(false);
    expect(await authenticate('alice')).toEqual({ viewer: null });
    expect(check).toHaveBeenCalledTimes(2);
  });

  it('goes on when the upstream refuses it for one thing alone', async () => {
    const credential = await meet();
    for (let times = 0; times < 3; times++) {
      vi.advanceTimersByTime(5_000);
      tokens.tell(credential, 'doubtful', Date.now());
      expect(await authenticate('alice')).toEqual({ viewer: credential.viewer });
    }
    expect(check).toHaveBeenCalledTimes(4);
    expect(onEnd).not.toHaveBeenCalled();
  });

  it('is checked again after a doubt, whatever a run says that had asked before', async () => {
    const credential = await meet();
    const askedAt = Date.now();
    vi.advanceTimersByTime(1_000);
    tokens.tell(credential, 'doubtful', Date.now());
    check.mockResolvedValue(invalid);
    tokens.tell(credential, 'valid', askedAt);
    expect(tokens.known('Bearer alice')).toBeUndefined();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(credential.viewer.ended?.aborted).toBe(true);
  });

  it('is checked again after a doubt that comes while it is checked, whatever that check says', async () => {
    const credential = await meet();
    vi.advanceTimersByTime(ttl);
    let settle = (_checked: TokenCheck) => {};
    check.mockImplementationOnce(() => new Promise((resolve) => (settle = resolve)));
    const authenticating = authenticate('alice');
    await vi.advanceTimersByTimeAsync(100);
    tokens.tell(credential, 'doubtful', Date.now());
    check.mockResolvedValue(invalid);
    settle(valid);
    expect(await authenticating).toEqual({ viewer: credential.viewer });
    await vi.advanceTimersByTimeAsync(5_000);
    expect(credential.viewer.ended?.aborted).toBe(true);
  });

  it('is valid for as long from when the upstream was asked, however long it took to say so', async () => {
    const credential = await meet();
    const askedAt = Date.now();
    vi.advanceTimersByTime(ttl / 2);
    tokens.tell(credential, 'valid', askedAt);
    vi.advanceTimersByTime(ttl / 2 - 1);
    expect(tokens.known('Bearer alice')).toBe(credential.viewer);
    vi.advanceTimersByTime(1);
    expect(tokens.known('Bearer alice')).toBeUndefined();
  });

  it('that opens another account ends, and opens that one when it comes again a while later', async () => {
    const { viewer } = await meet();
    check.mockResolvedValue({ kind: 'valid', userId: 2 });
    vi.advanceTimersByTime(ttl);
    expect(await authenticate('alice')).toEqual({ viewer: null });
    expect(onOther).toHaveBeenCalledTimes(1);
    expect(viewer.ended?.aborted).toBe(true);
    vi.advanceTimersByTime(9_000);
    expect(await authenticate('alice')).toEqual({ viewer: null });
    vi.advanceTimersByTime(1_001);
    expect((await meet()).viewer.id).toBe(2);
  });

  it('is forgotten when nobody has used it for a while', async () => {
    const credential = await meet();
    vi.advanceTimersByTime(idle - 1_000);
    await authenticate('alice');
    vi.advanceTimersByTime(idle - 1_000);
    expect(onEnd).not.toHaveBeenCalled();
    vi.advanceTimersByTime(60_000);
    expect(onEnd).toHaveBeenCalledTimes(1);
    expect(credential.viewer.ended?.aborted).toBe(true);
    check.mockClear();
    await authenticate('alice');
    expect(check).toHaveBeenCalledTimes(1);
  });
});

describe('a token that nobody has brought before', () => {
  it('is asked about once a second from an address, while the upstream cannot say', async () => {
    check.mockResolvedValue(away);
    const together = Array.from({ length: 90 }, (_, index) => authenticate(`nobody-${index}`));
    for (const response of await Promise.all(together))
      expect(response).toEqual({ error: 'upstreamAway', retryAfter: 5 });
    const first = check.mock.calls.length;
    expect(first).toBeLessThanOrEqual(4);
    for (let index = 0; index < 50; index++) await authenticate(`one-more-${index}`);
    expect(check).toHaveBeenCalledTimes(first);
    vi.advanceTimersByTime(1_001);
    await authenticate('later');
    expect(check).toHaveBeenCalledTimes(first + 1);
    // The others have done nothing.
    await authenticate('nobody', 'two');
    expect(check).toHaveBeenCalledTimes(first + 2);
  });

  it('is not asked about for as long as the upstream asks for, while others of its address are', async () => {
    check.mockResolvedValueOnce({ kind: 'away', retryAfter: 600 });
    expect(await authenticate('alice')).toEqual({ error: 'upstreamAway', retryAfter: 600 });
    vi.advanceTimersByTime(300_000);
    expect(await authenticate('alice')).toEqual({ error: 'upstreamAway', retryAfter: 300 });
    expect(check).toHaveBeenCalledTimes(1);
    expect(await authenticate('bob')).toMatchObject({ viewer: { id: 1 } });
    vi.advanceTimersByTime(300_000);
    expect(await authenticate('alice')).toMatchObject({ viewer: { id: 1 } });
  });

  it('waits behind those of its own address alone, where the upstream leaves them without a response', async () => {
    check.mockImplementation((token) => (token === 'alice' ? Promise.resolve(valid) : never()));
    const hanging = Array.from({ length: 160 }, (_, index) => authenticate(`nobody-${index}`));
    await vi.waitFor(() => expect(check).toHaveBeenCalled());
    expect(await authenticate('alice', 'two')).toMatchObject({ viewer: { id: 1 } });
    expect(check).toHaveBeenCalledTimes(4 + 1);
    // Nor are there more that wait than anybody needs.
    expect(await hanging.at(-1)).toEqual({ error: 'tooManyRequests', retryAfter: 5 });
  });

  it('is not asked about for a minute from an address where too many were invalid, even if it waits there', async () => {
    check.mockResolvedValue(invalid);
    const together = Array.from({ length: 90 }, (_, index) => authenticate(`nobody-${index}`));
    const responses = await Promise.all(together);
    expect(responses.slice(0, 20)).toEqual(Array(20).fill({ viewer: null }));
    expect(responses.at(-1)).toEqual({ error: 'tooManyRequests', retryAfter: 60 });
    expect(check.mock.calls.length).toBeLessThan(24);
    check.mockResolvedValue(valid);
    expect(await authenticate('alice')).toMatchObject({ error: 'tooManyRequests' });
    vi.advanceTimersByTime(60_001);
    expect(await authenticate('alice')).toMatchObject({ viewer: { id: 1 } });
  });
});
