import { expect, it } from 'vitest';
import { jsonResponse } from '../../src/http/response.ts';
import { staticResponse } from '../../src/pages/page.ts';
import { newExchange } from '../support/exchanges.ts';

it('the response is created once for requests at the same time, and again only after a failure', async () => {
  const exchange = newExchange();
  let created = 0;
  const page = staticResponse(async () => {
    if (++created === 1) throw new Error('a file could not be read');
    return jsonResponse(200, `{"made":${created}}`);
  });
  await expect(async () => page(exchange)).rejects.toThrow('a file could not be read');
  const responses = await Promise.all([page(exchange), page(exchange)]);
  responses.push(await page(exchange));
  expect(responses.map(({ body }) => body.toString())).toEqual(Array(3).fill('{"made":2}'));
});
