/** Turns for reading documents: how long those of one user delay others, and what is checked after the wait. */

import { expect, it } from 'vitest';
import { createToken, revokeToken } from '../../src/auth/tokens.ts';
import type { Viewer } from '../../src/auth/viewer.ts';
import { readConfig } from '../../src/config/config.ts';
import { createDocuments, createReadInTurn } from '../../src/graphql/documents.ts';
import type { Exchange } from '../../src/http/exchange.ts';
import { postGraphql } from '../support/gateway.ts';
import { gatewayWith } from '../support/setUp.ts';

const { gateway, database, alice, bob } = await gatewayWith(['alice', 'bob'], {
  settings: { MAX_TOKENS: '50000' },
});

let sent = 0;

/** A request whose document has not come before, and takes a tenth of a second or more to read. */
function costly() {
  const fragments = Array.from(
    { length: 200 },
    (_, index) => `fragment F${index} on User { id ...F${index + 1} ...F${Math.min(index + 2, 200)} }`,
  );
  const query = `query Q${sent++} { viewer { ...F0 } } ${fragments.join(' ')} fragment F200 on User { id }`;
  return { query };
}

async function post(token: string, body: unknown) {
  const response = await postGraphql(gateway, token, body);
  return { status: response.status, challenge: response.headers.get('WWW-Authenticate') };
}

it('many requests with costly documents of one user delay another user by few of them', async () => {
  const answered: unknown[] = [];
  const all = Array.from({ length: 6 }, () =>
    post(alice.token, costly()).then((response) => answered.push(response)),
  );
  for (const query of ['{ viewer { id } }', '{ viewer { username } }', '{ dttDevices { totalCount } }'])
    expect(await post(bob.token, { query })).toMatchObject({ status: 200 });
  expect(answered.length).toBeLessThan(all.length / 2);
  await Promise.all(all);
});

it('a request whose token is revoked while its document waits gets 401', async () => {
  const { id, token } = await createToken(database.pool, 'alice', 'request');
  const [first, second] = [post(token, costly()), post(token, costly())];
  await first;
  await revokeToken(database.pool, id);
  expect(await second).toEqual({
    status: 401,
    challenge: 'Bearer error="invalid_token", error_description="the token is unknown or revoked"',
  });
});

it('a document that nobody waits for any more is not read, and one that is cached does not wait', async () => {
  const documents = createDocuments(readConfig({}));
  const read = createReadInTurn(documents, { find: () => '{ viewer { id } }' }, (_, viewer) => viewer);
  const viewer: Viewer = { id: 1, tokenId: 1, scope: 'read' };
  // The parts of an exchange that are used.
  const exchange = { isOver: true } as Exchange;
  const work = (current: Viewer | null) => current && documents.read('{ viewer { id } }');
  expect(await read({}, { exchange, viewer }, work)).toBeNull();
  exchange.isOver = false;
  const reading = read({}, { exchange, viewer }, work);
  expect(reading).toBeInstanceOf(Promise);
  const found = await reading;
  expect(read({}, { exchange, viewer }, work)).toBe(found);
});
