import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { pino } from 'pino';
import { expect, it } from 'vitest';
import { jsonAnswer } from '../../src/answer.ts';
import { openExchange } from '../../src/exchange.ts';
import { largeAnswer } from '../../src/pages/large.ts';

/** Somebody asks, with this Accept-Encoding. */
function exchangeWith(encoding: string) {
  const request = new IncomingMessage(new Socket());
  request.headers['accept-encoding'] = encoding;
  return openExchange(request, new ServerResponse(request), pino({ level: 'silent' }), () => {});
}

it('is made again for the next who asks when it could not be made, and then never again', async () => {
  let made = 0;
  const page = largeAnswer(async () => {
    if (++made === 1) throw new Error('a file could not be read');
    return jsonAnswer(200, `{"made":${made}}`);
  });
  await expect(async () => page(exchangeWith(''))).rejects.toThrow('a file could not be read');
  for (let time = 0; time < 3; time++) {
    const { body } = await page(exchangeWith(''));
    expect(body.toString()).toBe('{"made":2}');
  }
});
