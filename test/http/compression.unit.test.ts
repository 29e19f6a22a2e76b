import type { OutgoingHttpHeaders } from 'node:http';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { codings, formFor, withOwnMemory } from '../../src/http/compression.ts';
import type { Exchange } from '../../src/http/exchange.ts';
import {
  type HttpResponse,
  jsonResponse,
  matches,
  revalidated,
  textResponse,
} from '../../src/http/response.ts';
import type { Endpoint } from '../../src/http/target.ts';
import { decoded } from '../support/decoded.ts';
import { fuzzed, fuzzTimeout } from '../support/fuzzed.ts';

/** The parts of an exchange that are used. */
const exchangeWith = (headers: OutgoingHttpHeaders, endpoint: Endpoint = 'rest') =>
  ({ endpoint, request: { headers } }) as unknown as Exchange;
const formOf = (response: HttpResponse, headers: OutgoingHttpHeaders = {}, endpoint?: Endpoint) =>
  formFor(exchangeWith(headers, endpoint), response);

const textOf = ({ body, headers }: HttpResponse) => String(decoded(body, headers['Content-Encoding']));
const long = JSON.stringify('x'.repeat(2_000));
const gzip = { 'accept-encoding': 'gzip' };

describe('a response', () => {
  it.each(codings)(
    'is compressed with %s for a client that accepts it, with the headers that change by it',
    async (coding) => {
      const plain = revalidated(jsonResponse(200, long), 'Authorization', { Deprecation: '@1' });
      const form = await formOf(plain, { 'accept-encoding': coding });
      expect(textOf(form)).toBe(long);
      const tag = String(plain.headers.ETag);
      const ending = coding === 'gzip' ? 'gz' : coding;
      const headers = { ETag: `${tag.slice(0, -1)}-${ending}"`, Vary: 'Authorization, Accept-Encoding' };
      expect(form.headers).toEqual({
        ...plain.headers,
        ...headers,
        'Content-Encoding': coding,
        'Content-Length': form.body.length,
      });
      expect(form.body.length).toBeLessThan(100);
      expect(form.validator).toEqual({
        etag: headers.ETag,
        headers: { ...headers, 'Cache-Control': 'private, no-cache', Deprecation: '@1' },
      });
    },
  );

  it('is unchanged but for Vary for a client without Accept-Encoding', async () => {
    const plain = revalidated(jsonResponse(200, long), 'Authorization');
    const form = await formOf(plain);
    const vary = { Vary: 'Authorization, Accept-Encoding' };
    expect(form).toMatchObject({ status: 200, body: plain.body, headers: { ...plain.headers, ...vary } });
    expect(form.headers).not.toHaveProperty('Content-Encoding');
    expect(form.validator?.headers).toMatchObject({ ETag: plain.headers.ETag, ...vary });
  });

  it('is compressed from 1 KiB up, errors as well, and below that only if the client does not accept identity', async () => {
    const made = async (length: number, status: number, accept: string) => {
      const response = jsonResponse(status, '"'.padEnd(length, 'x'));
      return (await formOf(response, { 'accept-encoding': accept }, 'graphql')).headers;
    };
    for (const status of [200, 400, 500]) {
      expect(await made(1_023, status, 'gzip')).not.toHaveProperty('Content-Encoding');
      expect(await made(1_023, status, 'gzip')).toHaveProperty('Vary', 'Accept-Encoding');
      expect(await made(1_024, status, 'gzip')).toHaveProperty('Content-Encoding', 'gzip');
      expect(await made(2, status, 'gzip, identity;q=0')).toHaveProperty('Content-Encoding', 'gzip');
      // An unacceptable form is better than none.
      expect(await made(1_024, status, '*;q=0')).not.toHaveProperty('Content-Encoding');
    }
  });

  const given = jsonResponse(200, long);
  it.each<[string, HttpResponse, OutgoingHttpHeaders?, Endpoint?]>([
    ['of a page', given, gzip, 'page'],
    ['that is not JSON', textResponse(200, long)],
    ['forwarded from the upstream', { ...given, isForwarded: true }],
    ['that is encoded already', { ...given, headers: { ...given.headers, 'content-encoding': 'br' } }],
    [
      'with no-transform',
      { ...given, headers: { ...given.headers, 'cache-control': 'private,no-transform' } },
    ],
    ['without a body', { status: 204, headers: {}, body: Buffer.alloc(0) }],
  ])('%s is not changed', async (_, response, headers = gzip, endpoint = 'rest') => {
    expect(await formOf(response, headers, endpoint)).toBe(response);
  });

  it('is not compressed if the request has no-transform, since a page cannot set Accept-Encoding', async () => {
    const form = await formOf(given, { ...gzip, 'cache-control': 'max-age=0, No-Transform' });
    expect(form.headers).not.toHaveProperty('Content-Encoding');
    expect((await formOf(given, { ...gzip, 'cache-control': 'x-no-transform' })).headers).toHaveProperty(
      'Content-Encoding',
    );
  });

  it('made by a library with header names in lower case has no header twice', async () => {
    const headers = { 'content-type': 'application/graphql-response+json', vary: 'Origin' };
    const form = await formOf({ status: 200, headers, body: Buffer.from(long) }, gzip);
    expect(form.headers).toEqual({
      'content-type': 'application/graphql-response+json',
      Vary: 'Origin, Accept-Encoding',
      'Content-Encoding': 'gzip',
      'Content-Length': form.body.length,
    });
  });

  it('from the cache is compressed once per coding, also for requests at the same time', async () => {
    const text = JSON.stringify('x'.repeat(100_000));
    for (const body of [long, text]) {
      const cached = { ...jsonResponse(200, body), forms: new Map() };
      const forms = await Promise.all([formOf(cached, gzip), formOf(cached, gzip)]);
      expect(forms[1]).toBe(forms[0]);
      expect(await formOf(cached, gzip)).toBe(forms[0]);
      expect(await formOf(cached)).toBe(await formOf(cached));
    }
  });

  it('from the cache is compressed anew after a failure', async () => {
    const forms = new Map();
    const body = Buffer.alloc(100_000);
    const failing = vi.spyOn(Buffer, 'allocUnsafeSlow').mockImplementation(() => {
      throw new Error('no memory');
    });
    const making = expect(formOf({ ...jsonResponse(200, long), body, forms }, gzip)).rejects.toThrow();
    await making;
    failing.mockRestore();
    expect(forms.has('gzip')).toBe(false);
  });
});

describe('the form', () => {
  it.each([
    ['of today’s browsers', 'gzip, deflate, br, zstd', 'br'],
    ['of a browser without TLS', 'gzip, deflate', 'gzip'],
    ['with weights', 'br;q=0.2, gzip;q=0.9, identity;q=0.5', 'gzip'],
    ['with upper case and spaces', ' GZIP ;Q=0.5 ,\tBr', 'br'],
    ['with upper case and equal weights', 'GZIP, BR', 'br'],
    ['with the lowest weight', 'gzip;q=0.001', 'gzip'],
    ['that prefers no coding', 'identity, gzip;q=0.5', undefined],
    ['that rejects a coding', 'gzip;q=0', undefined],
    ['that rejects a coding with many digits', 'br, gzip;q=0.000', 'br'],
    ['that accepts any coding', '*', 'gzip'],
    ['that accepts any coding but gzip', 'gzip;q=0, *', 'br'],
    ['that accepts any coding, and gives one a lower weight', 'gzip;q=0.2, *;q=0.5', 'br'],
    ['that rejects identity', 'gzip, identity;q=0', 'gzip'],
    ['that rejects everything', '*;q=0', undefined],
    ['that accepts only unknown codings', 'compress, identity;q=0', undefined],
    ['with unknown codings', 'compress, deflate, zstd', undefined],
    ['that is empty', '', undefined],
    ['that is malformed', ';;q=,,=;', undefined],
    ['whose weight is not a number', 'gzip;q=high', undefined],
  ])('for a header %s', async (_, accept, coding) => {
    // When the header is read, and when it is remembered.
    for (let time = 0; time < 2; time++) {
      const { headers } = await formOf(jsonResponse(200, long), { 'accept-encoding': accept });
      expect(headers['Content-Encoding']).toBe(coding);
    }
  });
});

describe('a body', () => {
  const large = JSON.stringify(Array.from({ length: 5_000 }, (_, id) => ({ id, name: 'x' })));

  it.each(codings)(
    'is compressed at once or in another thread, always to the same bytes, without a larger buffer: %s',
    async (coding) => {
      for (const size of [1_024, 65_536, 65_537, large.length]) {
        const make = () => formOf(jsonResponse(200, large.slice(0, size)), { 'accept-encoding': coding });
        expect(make() instanceof Promise).toBe(size > 65_536);
        const { body } = await make();
        expect(body.buffer.byteLength).toBe(body.length);
        expect(String(decoded(body, coding))).toBe(large.slice(0, size));
        // Deterministic, since an ETag stands for exact bytes.
        expect(body.equals((await make()).body)).toBe(true);
        expect(body.length).toBeLessThan(size / 4);
      }
    },
  );

  it('that is a slice of a larger buffer is copied, and any other is not', () => {
    const whole = Buffer.allocUnsafeSlow(100);
    expect(withOwnMemory(whole)).toBe(whole);
    expect(withOwnMemory(whole.subarray(1)).buffer.byteLength).toBe(99);
  });
});

describe('If-None-Match', () => {
  const plain = revalidated(jsonResponse(200, long), 'Authorization');
  const etag = String(plain.headers.ETag);
  const tagOf = (ending: string) => `${etag.slice(0, -1)}-${ending}"`;
  const both = { 'accept-encoding': 'br, gzip' };

  it.each([
    ['the tag of the preferred form', both, tagOf('br'), tagOf('br')],
    ['the tag of another accepted form', both, tagOf('gz'), tagOf('gz')],
    ['the tag of the uncompressed form', both, etag, etag],
    ['the tag of the uncompressed form, from a client that accepts no other', {}, etag, etag],
    ['several tags', both, `"x", ${etag}, W/${tagOf('br')}`, tagOf('br')],
    ['an asterisk', both, '*', tagOf('br')],
    ['a tag that a proxy made weak', both, `W/${tagOf('gz')}`, tagOf('gz')],
    ['the tag of a form that is no longer accepted', {}, tagOf('br'), undefined],
    [
      'the tag of the uncompressed form, which is no longer accepted',
      { 'accept-encoding': 'gzip, identity;q=0' },
      etag,
      undefined,
    ],
    ['the tag of another response', both, '"x-br"', undefined],
  ])(
    'with %s is compared with the tags of the forms that the client accepts',
    async (_, headers, condition, expected) => {
      const { validator } = await formOf(plain, { ...headers, 'if-none-match': condition });
      const isMatch = validator !== undefined && matches(condition, validator.etag);
      expect(isMatch ? validator.headers.ETag : undefined).toBe(expected);
      expect(validator?.headers.Vary).toBe('Authorization, Accept-Encoding');
    },
  );

  it('with the tag of the preferred form causes no compression', async () => {
    const cached = { ...plain, forms: new Map() };
    await formOf(cached, { ...both, 'if-none-match': tagOf('br') });
    expect([...cached.forms.keys()]).toEqual(['identity']);
  });
});

/** Headers, with what they mean by RFC 9110, section 12.5.3, computed from the parts that they are made of. */
const acceptance = fc
  .uniqueArray(
    fc.tuple(
      fc.constantFrom('gzip', 'br', 'identity', '*', 'deflate', 'GZIP'),
      fc.constantFrom('', ';q=0', ';q=0.5', '; q=0.001', ';q=1.000', ' ; q=0.0'),
    ),
    { selector: ([name]) => name.toLowerCase(), maxLength: 5 },
  )
  .map((parts) => {
    const qualities = new Map(
      parts.map(([name, quality]) => [name.toLowerCase(), Number(/[\d.]+/.exec(quality)?.[0] ?? 1)]),
    );
    const qualityOf = (form: string) =>
      qualities.get(form) ?? qualities.get('*') ?? Number(form === 'identity');
    return {
      header: parts.map((part) => part.join('')).join(', '),
      accepts: (form: string) => qualityOf(form) > 0,
    };
  });
const nonsense = fc.string({ maxLength: 40 }).map((header) => ({ header, accepts: undefined }));

const bodies = [
  '{}',
  JSON.stringify('a'.repeat(3_000)),
  JSON.stringify('b'.repeat(3_000)),
  `"${'é'.repeat(700)}"`,
];
const responses = bodies.map((body) => ({
  ...revalidated(jsonResponse(200, body), 'Accept'),
  forms: new Map(),
}));

it(
  'a client always ends up with the right text in a form that it accepts, whatever it accepts and has cached',
  async () => {
    const step = fc.record({
      accept: fc.oneof({ weight: 9, arbitrary: acceptance }, nonsense),
      which: fc.nat(bodies.length - 1),
      weak: fc.boolean(),
    });
    const property = fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async (steps) => {
      /** The responses that the client has, by their tags. */
      const had = new Map<string, { text: string; form: string }>();
      for (const { accept, which, weak } of steps) {
        const text = bodies[which] ?? '';
        const condition = [...had.keys()].map((tag) => (weak ? `W/${tag}` : tag)).join(', ');
        const headers = {
          'accept-encoding': accept.header,
          ...(had.size > 0 && { 'if-none-match': condition }),
        };
        const sent = await formOf(responses[which] ?? expect.fail(), headers);
        const etag = sent.validator?.etag ?? expect.fail('it has no tag');
        const isHad = condition !== '' && matches(condition, etag);
        const form = String(sent.headers['Content-Encoding'] ?? 'identity');
        const has = isHad ? had.get(etag) : { text: textOf(sent), form };
        expect(has?.text).toBe(text);
        if (!isHad) {
          expect(sent.headers['Content-Length']).toBe(sent.body.length);
          expect(sent.headers.ETag).toBe(etag);
          had.set(etag, { text, form });
        }
        const { accepts } = accept;
        if (accepts && [...codings, 'identity'].some(accepts))
          expect([accept.header, has?.form, accepts(has?.form ?? '')]).toEqual([
            accept.header,
            has?.form,
            true,
          ]);
      }
    });
    await fc.assert(property, fuzzed(100));
  },
  fuzzTimeout,
);
