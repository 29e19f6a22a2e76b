import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { openExchange } from '../../src/http/exchange.ts';
import { jsonResponse } from '../../src/http/response.ts';
import { staticResponse } from '../../src/pages/staticResponse.ts';
import { nobodyListens } from '../support/exchanges.ts';

/** An exchange whose request has this Accept-Encoding. */
function exchangeWith(encoding: string) {
  const request = new IncomingMessage(new Socket());
  request.headers['accept-encoding'] = encoding;
  return openExchange(request, new ServerResponse(request), nobodyListens);
}

it('the response is created again by the request after a failure, and after that never again', async () => {
  let created = 0;
  const page = staticResponse(async () => {
    if (++created === 1) throw new Error('a file could not be read');
    return jsonResponse(200, `{"made":${created}}`);
  });
  await expect(async () => page(exchangeWith(''))).rejects.toThrow('a file could not be read');
  for (let time = 0; time < 3; time++) {
    const { body } = await page(exchangeWith(''));
    expect(body.toString()).toBe('{"made":2}');
  }
});

it.each([
  ['gzip', 'gzip'],
  ['*', 'gzip'],
  ['identity, gzip;q=0.5', undefined],
  ['gzip;q=0', undefined],
])('for the Accept-Encoding %j the encoding is %s', async (accepted, encoding) => {
  const page = staticResponse(async () => jsonResponse(203, '{}'));
  const { status, headers } = await page(exchangeWith(accepted));
  expect(status).toBe(203);
  expect(headers['Content-Encoding']).toBe(encoding);
  expect(headers).toMatchObject({
    'Content-Type': 'application/json; charset=utf-8',
    Vary: 'Accept-Encoding',
  });
});

it('the response is created once for each encoding, however many requests come at the same time', async () => {
  let created = 0;
  const text = '{"a":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}';
  const page = staticResponse(async () => {
    created++;
    return jsonResponse(200, text);
  }, 'Accept-Encoding, Host');
  const responses = await Promise.all(['gzip', 'gzip', 'br', ''].map((each) => page(exchangeWith(each))));
  expect(created).toBe(2);
  const [zipped, , plain] = responses;
  expect(gunzipSync(zipped?.body ?? '').toString()).toBe(text);
  expect(zipped?.headers).toMatchObject({
    'Content-Encoding': 'gzip',
    'Content-Length': zipped?.body.length,
    Vary: 'Accept-Encoding, Host',
  });
  expect(plain?.body.toString()).toBe(text);
  expect(plain?.headers).not.toHaveProperty('Content-Encoding');
  // Other bytes have another ETag.
  expect(zipped?.headers.ETag).not.toBe(plain?.headers.ETag);
});
