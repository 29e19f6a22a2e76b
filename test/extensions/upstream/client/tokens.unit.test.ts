/** Tokens of the upstream that clients send, with a mock in place of the upstream and a clock that the test sets. */

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  type Credential,
  createUpstreamTokens,
  type TokenCheck,
  type UpstreamTokens,
} from '../../../../src/extensions/upstream/client/tokens.ts';
import { messages } from '../../../../src/extensions/upstream/messages.ts';
import { tooManyRequests } from '../../../../src/http/errorResponse.ts';

const valid: TokenCheck = { kind: 'valid', userId: 1 };
const invalid: TokenCheck = { kind: 'invalid' };
const away: TokenCheck = { kind: 'away', retryAfter: undefined };
const upstreamAway = { code: 'SERVICE_UNAVAILABLE', message: messages.upstreamUnreachable };
const ttl = 60_000;
const idle = 600_000;

const check = vi.fn<(token: string) => Promise<TokenCheck>>();
const onBegin = vi.fn();
const onEnd = vi.fn();
let tokens: UpstreamTokens;

/** How far the system clock was set back, in milliseconds. */
let setBack = 0;

function setClockBack(): void {
  setBack += 2 * 60 * 60_000;
  vi.setSystemTime(Date.now() - 2 * 60 * 60_000);
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
  setBack = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => Date.now() + setBack);
  for (const mock of [check, onBegin, onEnd]) mock.mockReset();
  check.mockResolvedValue(valid);
  tokens = createUpstreamTokens({ check, onBegin, onEnd, ttl, idle });
});
afterEach(() => tokens.close());

const authenticate = (token: string, address = 'one') => tokens.authenticate(`Bearer ${token}`, address);

/** Authenticates with a valid token, and returns its credential. */
async function credentialFor(token = 'alice'): Promise<Credential> {
  const authentication = await authenticate(token);
  const viewer = 'viewer' in authentication ? authentication.viewer : undefined;
  const credential = viewer && tokens.credentialOf(viewer);
  if (!credential) throw new Error('the token was not accepted');
  expect(onBegin).toHaveBeenLastCalledWith(credential);
  const { id } = credential.viewer;
  const ended = expect.objectContaining({ aborted: false });
  expect(credential).toMatchObject({ token, viewer: { id, tokenId: undefined, scope: 'activate', ended } });
  return credential;
}

const never = () => new Promise<TokenCheck>(() => {});

describe('a token that was valid before', () => {
  it('is checked again after its time to live, and not before, also if the system clock is set back', async () => {
    const { viewer } = await credentialFor();
    vi.advanceTimersByTime(ttl - 1);
    expect(tokens.known('Bearer alice')).toBe(viewer);
    expect(await authenticate('alice')).toEqual({ viewer });
    expect(check).toHaveBeenCalledTimes(1);
    setClockBack();
    vi.advanceTimersByTime(1);
    expect(tokens.known('Bearer alice')).toBeUndefined();
    expect(await authenticate('alice')).toEqual({ viewer });
    expect(check).toHaveBeenCalledTimes(2);
  });

  it('is checked by one request at a time, and accepted without waiting for a check that hangs', async () => {
    const { viewer } = await credentialFor();
    check.mockImplementation(never);
    vi.advanceTimersByTime(ttl);
    const began = process.uptime();
    const waiting = [authenticate('alice'), authenticate('alice')];
    // This request comes long after the check began.
    vi.advanceTimersByTime(ttl);
    waiting.push(authenticate('alice'));
    expect(await Promise.all(waiting)).toEqual([{ viewer }, { viewer }, { viewer }]);
    expect(process.uptime() - began).toBeLessThan(5);
    expect(check).toHaveBeenCalledTimes(2);
  });

  it('is accepted for an hour while the upstream is unavailable', async () => {
    const { viewer } = await credentialFor();
    check.mockResolvedValue(away);
    for (let minute = 1; minute < 60; minute++) {
      vi.advanceTimersByTime(60_000);
      expect(await authenticate('alice')).toEqual({ viewer });
    }
    vi.advanceTimersByTime(60_000);
    expect(await authenticate('alice')).toEqual({ error: upstreamAway, retryAfter: 5 });
    expect(await tokens.recheck(viewer)).toBe(false);
    check.mockResolvedValue(valid);
    vi.advanceTimersByTime(5_000);
    expect(await authenticate('alice')).toEqual({ viewer });
  });

  it('is checked once for many doubts, and again when an unavailable upstream may be asked again', async () => {
    const credential = await credentialFor();
    check.mockResolvedValue({ kind: 'away', retryAfter: 60 });
    for (let times = 0; times < 100; times++) tokens.noteRejected(credential, false);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(check).toHaveBeenCalledTimes(2);
    check.mockResolvedValue(invalid);
    await vi.advanceTimersByTimeAsync(59_000);
    expect(check).toHaveBeenCalledTimes(2);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(check.mock.calls).toEqual([['alice'], ...Array(2).fill(['alice', credential.viewer])]);
    expect(credential.viewer.ended?.aborted).toBe(true);
  });

  it('is checked again after a doubt, even if what was asked before the doubt confirms it later', async () => {
    const credential = await credentialFor();
    vi.advanceTimersByTime(ttl);
    let settle = (_checked: TokenCheck) => {};
    check.mockImplementationOnce(() => new Promise((resolve) => (settle = resolve)));
    const authenticating = authenticate('alice');
    await vi.advanceTimersByTimeAsync(100);
    tokens.noteRejected(credential, false);
    check.mockResolvedValue(invalid);
    settle(valid);
    expect(await authenticating).toEqual({ viewer: credential.viewer });
    expect(tokens.known('Bearer alice')).toBeUndefined();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(credential.viewer.ended?.aborted).toBe(true);
  });

  it('has its time to live from when the upstream was asked, however late the response came', async () => {
    check.mockImplementationOnce(async () => {
      vi.advanceTimersByTime(ttl / 2);
      return valid;
    });
    const { viewer } = await credentialFor();
    vi.advanceTimersByTime(ttl / 2 - 1);
    expect(tokens.known('Bearer alice')).toBe(viewer);
    vi.advanceTimersByTime(1);
    expect(tokens.known('Bearer alice')).toBeUndefined();
  });

  it('ends when it belongs to another account, and is accepted for that account ten seconds later', async () => {
    const { viewer } = await credentialFor();
    check.mockResolvedValue({ kind: 'valid', userId: 2 });
    vi.advanceTimersByTime(ttl);
    expect(await authenticate('alice')).toEqual({ viewer: null });
    expect(viewer.ended?.aborted).toBe(true);
    vi.advanceTimersByTime(9_000);
    expect(await authenticate('alice')).toEqual({ viewer: null });
    vi.advanceTimersByTime(1_001);
    expect((await credentialFor()).viewer.id).toBe(2);
  });

  it('is forgotten when it has not been used for a while', async () => {
    const credential = await credentialFor();
    vi.advanceTimersByTime(idle - 1_000);
    await authenticate('alice');
    vi.advanceTimersByTime(idle - 1_000);
    expect(onEnd).not.toHaveBeenCalled();
    vi.advanceTimersByTime(60_000);
    expect(onEnd.mock.calls).toEqual([[credential]]);
    expect(credential.viewer.ended?.aborted).toBe(true);
    const { viewer } = credential;
    expect([tokens.credentialOf(viewer), await tokens.recheck(viewer)]).toEqual([undefined, false]);
    check.mockClear();
    await authenticate('alice');
    expect(check).toHaveBeenCalledTimes(1);
  });
});

it('a token ends when the gateway does, and nothing is checked any more', async () => {
  const credential = await credentialFor();
  tokens.noteRejected(credential, false);
  tokens.close();
  await vi.advanceTimersByTimeAsync(idle);
  expect([credential.viewer.ended?.aborted, onEnd.mock.calls]).toEqual([true, [[credential]]]);
  expect(check).toHaveBeenCalledTimes(1);
});

it('a token is to be used before it is forgotten, at half the time at the latest', () => {
  const maxAges = [idle, 100_000].map((each) => {
    const opened = createUpstreamTokens({ check, onBegin, onEnd, ttl, idle: each });
    opened.close();
    return opened.maxAge;
  });
  expect(maxAges).toEqual([60, 50]);
});

describe('a token that was not sent before', () => {
  it('is checked if it has up to 4096 visible characters, once for requests that come together', async () => {
    const longest = '!~'.repeat(2_048);
    for (const impossible of [
      undefined,
      ...[`${longest}a`, 'aé', 'éa', '\u007f', 'a\tb'].map((each) => `Bearer ${each}`),
    ])
      expect(await tokens.authenticate(impossible, 'one')).toEqual({ viewer: null });
    const [first, second] = await Promise.all([authenticate(longest), authenticate(longest, 'two')]);
    expect(check.mock.calls).toEqual([[longest]]);
    expect([first, onBegin.mock.calls.length]).toEqual([second, 1]);
  });

  it('is checked once in five seconds for each address while the upstream is unavailable', async () => {
    check.mockResolvedValue(away);
    const together = Array.from({ length: 90 }, (_, index) => authenticate(`nobody-${index}`));
    for (const response of await Promise.all(together))
      expect(response).toEqual({ error: upstreamAway, retryAfter: 5 });
    const first = check.mock.calls.length;
    expect(first).toBeLessThanOrEqual(4);
    await authenticate('one more');
    expect(check).toHaveBeenCalledTimes(first);
    // Other addresses are not limited.
    await authenticate('nobody', 'two');
    expect(check).toHaveBeenCalledTimes(first + 1);
    vi.advanceTimersByTime(5_001);
    await authenticate('later');
    expect(check).toHaveBeenCalledTimes(first + 2);
  });

  it('is not checked for as long as the upstream asks to wait, while other tokens of its address are', async () => {
    check.mockResolvedValueOnce({ kind: 'away', retryAfter: 600 });
    expect(await authenticate('alice')).toEqual({ error: upstreamAway, retryAfter: 600 });
    vi.advanceTimersByTime(300_000);
    expect(await authenticate('alice')).toEqual({ error: upstreamAway, retryAfter: 300 });
    expect(check).toHaveBeenCalledTimes(1);
    expect(await authenticate('bob')).toMatchObject({ viewer: { id: 1 } });
    vi.advanceTimersByTime(300_000);
    expect(await authenticate('alice')).toMatchObject({ viewer: { id: 1 } });
  });

  it('does not wait for checks from other addresses that hang', async () => {
    check.mockImplementation((token) => (token === 'alice' ? Promise.resolve(valid) : never()));
    for (let index = 0; index < 160; index++) authenticate(`nobody-${index}`);
    await expect.poll(() => check).toHaveBeenCalled();
    expect(await authenticate('alice', 'two')).toMatchObject({ viewer: { id: 1 } });
    expect(check).toHaveBeenCalledTimes(4 + 1);
  });

  it('is rejected for a minute after too many invalid ones from its address, even if it was waiting', async () => {
    check.mockResolvedValue(invalid);
    const together = Array.from({ length: 90 }, (_, index) => authenticate(`nobody-${index}`));
    const responses = await Promise.all(together);
    expect(responses.slice(0, 20)).toEqual(Array(20).fill({ viewer: null }));
    expect(responses.at(-1)).toEqual({ error: tooManyRequests(60), retryAfter: 60 });
    expect(check.mock.calls.length).toBeLessThan(24);
    check.mockResolvedValue(valid);
    expect(await authenticate('alice')).toMatchObject({ error: { code: 'TOO_MANY_REQUESTS' } });
    vi.advanceTimersByTime(60_001);
    expect(await authenticate('alice')).toMatchObject({ viewer: { id: 1 } });
  });
});
