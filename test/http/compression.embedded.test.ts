/** The bytes that clients receive that accept compressed responses, from both APIs. */

import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { expect, it } from 'vitest';
import { decoded } from '../support/decoded.ts';
import { openTestGateway } from '../support/gateway.ts';
import { gatewayWith } from '../support/setUp.ts';

const { gateway, alice } = await gatewayWith(['alice']);

const list = '/api/v1/dtt/sessions';
const introspection = '{ __schema { types { name description fields { name description } } } }';

/** Sends a request, or posts a query, and returns the response without decompressing it. */
async function open(path: string, headers: Record<string, string>, query?: string, url = gateway.url) {
  const method = query === undefined ? 'GET' : 'POST';
  const own = { Authorization: `Bearer ${alice.token}`, 'Content-Type': 'application/json' };
  const sending = request(url + path, { method, headers: { ...own, ...headers } });
  sending.end(query === undefined ? undefined : JSON.stringify({ query }));
  const [response] = (await once(sending, 'response')) as [IncomingMessage];
  return { response, headers: response.headers, abort: () => sending.destroy() };
}

it.each([
  [list, undefined],
  // A large one.
  ['/graphql', introspection],
])(
  'a response has the same text in every coding, when computed and when cached: %s %s',
  async (path, query) => {
    const bodyOf = async ({ response }: { response: IncomingMessage }) =>
      Buffer.concat(await response.toArray());
    const plain = await bodyOf(await open(path, {}, query));
    for (const coding of ['', 'gzip']) {
      const form = await open(path, { 'Accept-Encoding': coding }, query);
      expect(form.headers['content-encoding']).toBe(coding || undefined);
      expect(form.headers.vary).toMatch(/\bAccept-Encoding$/);
      const body = await bodyOf(form);
      expect(form.headers['content-length']).toBe(String(body.length));
      expect(String(decoded(body, form.headers['content-encoding']))).toBe(String(plain));
      if (coding !== '') expect(body.length).toBeLessThan(plain.length / 2);
    }
  },
);

it('no response is compressed, nor has Accept-Encoding in its Vary header, with COMPRESSION=off', async () => {
  const settings = { COMPRESSION: 'off' };
  const other = await openTestGateway({ ...gateway.database, close: async () => {} }, { settings });
  for (const query of [undefined, introspection]) {
    const path = query === undefined ? list : '/graphql';
    const { headers, abort } = await open(path, { 'Accept-Encoding': 'gzip, br' }, query, other.url);
    expect(headers).not.toHaveProperty('content-encoding');
    expect(headers.vary ?? '').not.toContain('Encoding');
    abort();
  }
  await other.close();
});
