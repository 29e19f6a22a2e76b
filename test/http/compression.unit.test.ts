import type { OutgoingHttpHeaders } from 'node:http';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formFor, streamFor } from '../../src/http/compression.ts';
import { codings } from '../../src/http/contentCoding.ts';
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

/** As much of an exchange as is looked at. */
const exchangeWith = (headers: OutgoingHttpHeaders, endpoint: Endpoint = 'rest') =>
  ({ endpoint, request: { headers } }) as unknown as Exchange;
const asking = (response: HttpResponse, headers: OutgoingHttpHeaders = {}, endpoint?: Endpoint) =>
  formFor(exchangeWith(headers, endpoint), response);

const textOf = ({ body, headers }: HttpResponse) => String(decoded(body, headers['Content-Encoding']));
const long = JSON.stringify('x'.repeat(2_000));
const gzip = { 'accept-encoding': 'gzip' };

describe('a response', () => {
  it.each(codings)('is compressed for who takes %s, and says all that has changed by it', async (coding) => {
    const plain = revalidated(jsonResponse(200, long), 'Authorization', { Deprecation: '@1' });
    const form = await asking(plain, { 'accept-encoding': coding });
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
  });

  it('is as it was for who says nothing, but for what it varies by', async () => {
    const plain = revalidated(jsonResponse(200, long), 'Authorization');
    const form = await asking(plain);
    const vary = { Vary: 'Authorization, Accept-Encoding' };
    expect(form).toMatchObject({ status: 200, body: plain.body, headers: { ...plain.headers, ...vary } });
    expect(form.headers).not.toHaveProperty('Content-Encoding');
    expect(form.validator?.headers).toMatchObject({ ETag: plain.headers.ETag, ...vary });
  });

  it('is compressed from 1 KiB up, also as an error; whoever will not have it plain gets all so', async () => {
    const made = async (length: number, status: number, accept: string) => {
      const response = jsonResponse(status, '"'.padEnd(length, 'x'));
      return (await asking(response, { 'accept-encoding': accept }, 'graphql')).headers;
    };
    for (const status of [200, 400, 500]) {
      expect(await made(1_023, status, 'gzip')).not.toHaveProperty('Content-Encoding');
      expect(await made(1_023, status, 'gzip')).toHaveProperty('Vary', 'Accept-Encoding');
      expect(await made(1_024, status, 'gzip')).toHaveProperty('Content-Encoding', 'gzip');
      expect(await made(2, status, 'gzip, identity;q=0')).toHaveProperty('Content-Encoding', 'gzip');
      // Better than nothing at all.
      expect(await made(1_024, status, '*;q=0')).not.toHaveProperty('Content-Encoding');
    }
  });

  const given = jsonResponse(200, long);
  it.each<[string, HttpResponse, OutgoingHttpHeaders?, Endpoint?]>([
    ['of a page', given, gzip, 'page'],
    ['that is no JSON', textResponse(200, long)],
    ['of the upstream', { ...given, isRelayed: true }],
    ['that is encoded', { ...given, headers: { ...given.headers, 'content-encoding': 'br' } }],
    [
      'that must not be',
      { ...given, headers: { ...given.headers, 'cache-control': 'private,no-transform' } },
    ],
    ['without a body', { status: 204, headers: {}, body: Buffer.alloc(0) }],
  ])('%s is left as it is', async (_, response, headers = gzip, endpoint = 'rest') => {
    expect(await asking(response, headers, endpoint)).toBe(response);
  });

  it('is left plain for who asks for that, as a page can, which may not say what it takes', async () => {
    const form = await asking(given, { ...gzip, 'cache-control': 'max-age=0, No-Transform' });
    expect(form.headers).not.toHaveProperty('Content-Encoding');
    expect((await asking(given, { ...gzip, 'cache-control': 'x-no-transform' })).headers).toHaveProperty(
      'Content-Encoding',
    );
  });

  it('made by others has its headers once, however they write them', async () => {
    const headers = { 'content-type': 'application/graphql-response+json', vary: 'Origin' };
    const form = await asking({ status: 200, headers, body: Buffer.from(long) }, gzip);
    expect(form.headers).toEqual({
      'content-type': 'application/graphql-response+json',
      Vary: 'Origin, Accept-Encoding',
      'Content-Encoding': 'gzip',
      'Content-Length': form.body.length,
    });
  });

  it('that is sent again is compressed once, also while that takes a while', async () => {
    const text = JSON.stringify('x'.repeat(100_000));
    for (const body of [long, text]) {
      const kept = { ...jsonResponse(200, body), forms: new Map() };
      const forms = await Promise.all([asking(kept, gzip), asking(kept, gzip)]);
      expect(forms[1]).toBe(forms[0]);
      expect(await asking(kept, gzip)).toBe(forms[0]);
      expect(await asking(kept)).toBe(await asking(kept));
    }
  });

  it('that is sent again is compressed anew where that has failed', async () => {
    const forms = new Map();
    // As much of a body as is looked at before zlib rejects it.
    const body = { length: 100_000 } as Buffer;
    await expect(asking({ ...jsonResponse(200, long), body, forms }, gzip)).rejects.toThrow();
    expect(forms.has('gzip')).toBe(false);
  });
});

describe('a conditional request', () => {
  const plain = revalidated(jsonResponse(200, long), 'Authorization');
  const etag = String(plain.headers.ETag);
  const tagOf = (ending: string) => `${etag.slice(0, -1)}-${ending}"`;
  const both = { 'accept-encoding': 'br, gzip' };

  it.each([
    ['the form that it would get', both, tagOf('br'), tagOf('br')],
    ['another that it takes', both, tagOf('gz'), tagOf('gz')],
    ['it plain', both, etag, etag],
    ['it plain, and takes nothing else', {}, etag, etag],
    ['several', both, `"x", ${etag}, W/${tagOf('br')}`, tagOf('br')],
    ['anything', both, '*', tagOf('br')],
    ['one that a proxy made weak', both, `W/${tagOf('gz')}`, tagOf('gz')],
    ['one that it no longer takes', {}, tagOf('br'), undefined],
    ['it plain, and no longer takes it so', { 'accept-encoding': 'gzip, identity;q=0' }, etag, undefined],
    ['another response', both, '"x-br"', undefined],
  ])('of who has %s', async (_, headers, condition, told) => {
    const { validator } = await asking(plain, { ...headers, 'if-none-match': condition });
    const isHad = validator !== undefined && matches(condition, validator.etag);
    expect(isHad ? validator.headers.ETag : undefined).toBe(told);
    expect(validator?.headers.Vary).toBe('Authorization, Accept-Encoding');
  });

  it('compresses nothing for who has it', async () => {
    const kept = { ...plain, forms: new Map() };
    await asking(kept, { ...both, 'if-none-match': tagOf('br') });
    expect([...kept.forms.keys()]).toEqual(['identity']);
  });
});

/** Headers, with what they say by RFC 9110, section 12.5.3, worked out from the parts that they are made of. */
const acceptance = fc
  .uniqueArray(
    fc.tuple(
      fc.constantFrom('gzip', 'br', 'zstd', 'identity', '*', 'deflate', 'GZIP'),
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
      takes: (form: string) => qualityOf(form) > 0,
    };
  });
const nonsense = fc.string({ maxLength: 40 }).map((header) => ({ header, takes: undefined }));

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
  'whatever a client takes and has, it ends with the text in a form that it takes',
  async () => {
    const step = fc.record({
      accept: fc.oneof({ weight: 9, arbitrary: acceptance }, nonsense),
      which: fc.nat(bodies.length - 1),
      weak: fc.boolean(),
    });
    const property = fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async (steps) => {
      /** What the client has, by its tags. */
      const had = new Map<string, { text: string; form: string }>();
      for (const { accept, which, weak } of steps) {
        const text = bodies[which] ?? '';
        const condition = [...had.keys()].map((tag) => (weak ? `W/${tag}` : tag)).join(', ');
        const headers = {
          'accept-encoding': accept.header,
          ...(had.size > 0 && { 'if-none-match': condition }),
        };
        const sent = await asking(responses[which] ?? expect.fail(), headers);
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
        const { takes } = accept;
        if (takes && [...codings, 'identity'].some(takes))
          expect([accept.header, has?.form, takes(has?.form ?? '')]).toEqual([
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

describe('a stream', () => {
  const stream = {
    status: 200,
    headers: { 'content-type': 'text/event-stream' },
    stream: null,
    ended: () => {},
  };

  it.each([
    ['gzip, deflate, br, zstd', 'gzip'],
    ['gzip, identity;q=0', 'gzip'],
    ['br', undefined],
    ['gzip;q=0.5, identity', undefined],
    ['', undefined],
  ])('for who takes %j is compressed by %s', (accept, coding) => {
    const { headers, encoder } = streamFor(exchangeWith({ 'accept-encoding': accept }), stream);
    expect(headers['Content-Encoding']).toBe(coding);
    expect(encoder !== undefined).toBe(coding !== undefined);
    expect(headers.Vary).toBe('Accept-Encoding');
  });
});
