import type { OutgoingHttpHeaders } from 'node:http';
import { describe, expect, it, vi } from 'vitest';
import type { Endpoint, Exchange } from '../../src/http/exchange.ts';
import {
  type Forms,
  type HttpResponse,
  jsonResponse,
  revalidated,
  textResponse,
} from '../../src/http/response.ts';
import { formFor } from '../../src/http/send.ts';
import { decoded } from '../support/decoded.ts';

/** The parts of an exchange that are used. */
const exchangeWith = (headers: OutgoingHttpHeaders, endpoint: Endpoint = 'rest') =>
  ({ endpoint, request: { headers } }) as unknown as Exchange;
const formOf = (response: HttpResponse, headers: OutgoingHttpHeaders = {}, endpoint?: Endpoint) =>
  formFor(exchangeWith(headers, endpoint), response);

const textOf = ({ body, headers }: HttpResponse) => String(decoded(body, headers['Content-Encoding']));
const long = JSON.stringify('x'.repeat(2_000));
const given = jsonResponse(200, long);
const gzip = { 'accept-encoding': 'gzip' };

describe('a response', () => {
  it('is compressed for a client that accepts it, with the headers that change by it', async () => {
    const plain = revalidated(jsonResponse(200, long), 'Authorization', { Deprecation: '@1' });
    const form = await formOf(plain, gzip);
    expect(textOf(form)).toBe(long);
    const tag = String(plain.headers.ETag);
    const headers = { ETag: `${tag.slice(0, -1)}-gz"`, Vary: 'Authorization, Accept-Encoding' };
    expect(form.headers).toEqual({
      ...plain.headers,
      ...headers,
      'Content-Encoding': 'gzip',
      'Content-Length': form.body.length,
    });
    expect(form.body.length).toBeLessThan(100);
    expect(form.validator).toEqual({
      etag: headers.ETag,
      headers: { ...headers, 'Cache-Control': 'private, no-cache', Deprecation: '@1' },
    });
  });

  it('is compressed from 1 KiB up, errors as well', async () => {
    const made = async (length: number, status: number) =>
      (await formOf(jsonResponse(status, '"'.padEnd(length, 'x')), gzip, 'graphql')).headers;
    for (const status of [200, 400, 500]) {
      expect(await made(1_023, status)).not.toHaveProperty('Content-Encoding');
      expect(await made(1_023, status)).toHaveProperty('Vary', 'Accept-Encoding');
      // Errors are not to be cached, and nothing is said about others.
      expect((await made(1_023, status))['Cache-Control']).toBe(status < 400 ? undefined : 'no-store');
      expect(await made(1_024, status)).toHaveProperty('Content-Encoding', 'gzip');
    }
  });

  it.each<[string, HttpResponse, OutgoingHttpHeaders?, Endpoint?]>([
    ['of a page', given, gzip, 'page'],
    ['that is not JSON', textResponse(200, long)],
    ['forwarded from the upstream', { ...given, isForwarded: true }],
    ['without a body', { status: 204, headers: {}, body: Buffer.alloc(0) }],
  ])('%s is not changed', async (_, response, headers = gzip, endpoint = 'rest') => {
    expect(await formOf(response, headers, endpoint)).toBe(response);
  });

  it('from the cache is compressed once, also for requests at the same time', async () => {
    const text = JSON.stringify('x'.repeat(100_000));
    for (const body of [long, text]) {
      const cached = { ...jsonResponse(200, body), forms: {} };
      const forms = await Promise.all([formOf(cached, gzip), formOf(cached, gzip)]);
      expect(forms[1]).toBe(forms[0]);
      expect(await formOf(cached, gzip)).toBe(forms[0]);
      expect(await formOf(cached)).toBe(await formOf(cached));
    }
  });

  it('from the cache is compressed anew after a failure', async () => {
    const forms: Forms = {};
    const body = Buffer.alloc(100_000);
    const failing = vi.spyOn(Buffer, 'allocUnsafeSlow').mockImplementation(() => {
      throw new Error('no memory');
    });
    const making = expect(formOf({ ...jsonResponse(200, long), body, forms }, gzip)).rejects.toThrow();
    await making;
    failing.mockRestore();
    expect(forms.gzip).toBeUndefined();
  });
});

it.each<[accept: string, coding: string | undefined, cacheControl?: string]>([
  ['gzip, deflate, br, zstd', 'gzip'],
  ['br;q=1, GZIP;q=0.9, identity;q=0.5', 'gzip'],
  ['gzip;q=0.01', 'gzip'],
  ['br, gzip ; q=0.000', undefined],
  ['gzip;q=0 , br', undefined],
  ['gzip;q=0, *', undefined],
  ['deflate, br', undefined],
  [';;q=,,=;', undefined],
  // A page cannot set Accept-Encoding.
  ['gzip', undefined, 'max-age=0,No-Transform'],
  ['gzip', undefined, 'max-age=0 no-transform'],
  ['gzip', undefined, 'no-transform'],
  ['gzip', 'gzip', 'x-no-transform'],
])(
  'the coding for a client that accepts %j is %j, with Cache-Control: %s',
  async (accept, coding, cacheControl) => {
    const { headers } = await formOf(given, { 'accept-encoding': accept, 'cache-control': cacheControl });
    expect(headers['Content-Encoding']).toBe(coding);
  },
);

it('a response that the client has in the preferred form is not compressed', async () => {
  const forms: Forms = {};
  const cached = { ...revalidated(jsonResponse(200, long), 'Authorization'), forms };
  const etag = `${String(cached.headers.ETag).slice(0, -1)}-gz"`;
  const { validator } = await formOf(cached, {
    'accept-encoding': 'gzip',
    'if-none-match': `"x", ${etag}`,
  });
  expect(validator).toMatchObject({ etag, headers: { ETag: etag, Vary: 'Authorization, Accept-Encoding' } });
  expect(Object.keys(forms)).toEqual(['plain']);
});
