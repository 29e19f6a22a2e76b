/** The bytes that clients receive that accept compressed responses, from both APIs. */

import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import { decoded } from '../support/decoded.ts';
import { gatewayBeside, gatewayWith } from '../support/setUp.ts';

const { gateway, alice } = await gatewayWith(['alice']);
const settings = { COMPRESSION: 'off' };
const uncompressed = await gatewayBeside(gateway.database, { settings });

const introspection = '{ __schema { types { name description fields { name description } } } }';

/** Sends a request, or posts a query, and returns the response without decompressing it. */
async function ask(url: string, coding: string, query?: string) {
  const method = query === undefined ? 'GET' : 'POST';
  const own = { Authorization: `Bearer ${alice.token}`, 'Content-Type': 'application/json' };
  const sending = request(url, { method, headers: { ...own, 'Accept-Encoding': coding } });
  sending.end(query === undefined ? undefined : JSON.stringify({ query }));
  const [response] = (await once(sending, 'response')) as [IncomingMessage];
  return { headers: response.headers, body: await buffer(response) };
}

it.each([
  ['/api/v1/dtt/sessions', undefined],
  // A large one.
  ['/graphql', introspection],
])(
  'a response has the same text in every coding, when computed and when cached: %s %s',
  async (path, query) => {
    const plain = await ask(uncompressed.url + path, 'gzip, br', query);
    expect(plain.headers).not.toHaveProperty('content-encoding');
    expect(plain.headers.vary ?? '').not.toContain('Encoding');
    for (const coding of ['', 'gzip', 'gzip']) {
      const { headers, body } = await ask(gateway.url + path, coding, query);
      expect(headers['content-encoding']).toBe(coding || undefined);
      expect(headers.vary).toMatch(/\bAccept-Encoding$/);
      expect(headers['content-length']).toBe(String(body.length));
      expect(String(decoded(body, headers['content-encoding']))).toBe(String(plain.body));
      if (coding !== '') expect(body.length).toBeLessThan(plain.body.length / 2);
    }
  },
);
