/** What a subscription follows, with a feed and tokens that do what the test says. */

import { describe, expect, it } from 'vitest';
import { createFollow } from '../src/live.ts';
import { createFakeFeed } from './feed.ts';

const alice = { id: 1, tokenId: 10 };
const bob = 2;

function open() {
  const fake = createFakeFeed();
  let isValid = async () => true;
  const viewers = {
    known: () => undefined,
    expected: () => undefined,
    authenticate: async () => null,
    isValid: () => isValid(),
  };
  const changes = createFollow(fake.feed, viewers, alice)()[Symbol.asyncIterator]();
  return {
    ...fake,
    changes,
    setValid(answer: () => Promise<boolean>) {
      isValid = answer;
    },
  };
}

const value = { done: false, value: undefined };
const end = { done: true, value: undefined };

/** Whether the promise is settled once everything that is under way is done. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  const settle = () => {
    settled = true;
  };
  promise.then(settle, settle);
  await new Promise((done) => setTimeout(done, 5));
  return settled;
}

describe('following', () => {
  it('yields at once, and then after each change of the viewer’s', async () => {
    const { changes, announce } = open();
    expect(await changes.next()).toEqual(value);
    for (const table of ['User', 'DttTemplateSegment', 'OssmDevice'] as const) {
      const next = changes.next();
      expect(await isSettled(next)).toBe(false);
      announce(alice.id, table);
      expect(await next).toEqual(value);
    }
  });

  it('does not yield for what concerns others', async () => {
    const { changes, announce } = open();
    await changes.next();
    const next = changes.next();
    announce(bob);
    announce(bob, 'ApiToken');
    expect(await isSettled(next)).toBe(false);
  });

  it('yields when anything may have changed', async () => {
    const { changes, lose, regain } = open();
    await changes.next();
    lose();
    expect(await changes.next()).toEqual(value);
    regain();
    expect(await changes.next()).toEqual(value);
  });

  it('makes one of what a slow reader has not asked for', async () => {
    const { changes, announce } = open();
    await changes.next();
    for (let change = 0; change < 1_000; change++) announce(alice.id);
    expect(await changes.next()).toEqual(value);
    expect(await isSettled(changes.next())).toBe(false);
  });

  it('does not miss a change that comes while the first value is on its way', async () => {
    const { changes, announce } = open();
    const first = changes.next();
    announce(alice.id);
    expect(await first).toEqual(value);
    expect(await changes.next()).toEqual(value);
  });

  it('ends when the token is revoked, and lets the feed go', async () => {
    const { changes, announce, setValid, followers } = open();
    await changes.next();
    const next = changes.next();
    setValid(async () => false);
    announce(alice.id, 'ApiToken');
    expect(await next).toEqual(end);
    await expect.poll(followers).toBe(0);
  });

  it('goes on when another token of the viewer’s is revoked', async () => {
    const { changes, announce } = open();
    await changes.next();
    announce(alice.id, 'ApiToken');
    announce(alice.id);
    expect(await changes.next()).toEqual(value);
  });

  it('ends when the token was revoked before the feed was heard', async () => {
    const { changes, setValid, followers } = open();
    setValid(async () => false);
    expect(await changes.next()).toEqual(end);
    await expect.poll(followers).toBe(0);
  });

  it('ends when the token was revoked while the feed was down', async () => {
    const { changes, lose, regain, setValid } = open();
    await changes.next();
    lose();
    await changes.next();
    setValid(async () => false);
    regain();
    expect(await changes.next()).toEqual(end);
  });

  it('goes on while the database cannot be asked about the token', async () => {
    const { changes, lose, setValid } = open();
    await changes.next();
    setValid(() => Promise.reject(new Error('the database is away')));
    lose();
    expect(await changes.next()).toEqual(value);
  });

  it('lets the feed go when the reader leaves', async () => {
    const { changes, followers } = open();
    await changes.next();
    expect(followers()).toBe(1);
    const next = changes.next();
    await changes.return?.();
    expect(await next).toEqual(end);
    await expect.poll(followers).toBe(0);
  });
});
