import { afterAll, expect, it, vi } from 'vitest';
import { jsonResponse, textResponse } from '../../src/http/response.ts';
import { send } from '../../src/http/send.ts';
import { openExchanges } from '../support/exchanges.ts';

const again = vi.fn();
const exchanges = await openExchanges((exchange) => {
  send(exchange, jsonResponse(200, '"…"'));
  send(exchange, textResponse(500, 'again'));
  again();
});
afterAll(exchanges.close);

it('a response is not sent if another one was sent before', async () => {
  expect((await fetch(exchanges.url)).status).toBe(200);
  expect(again).toHaveBeenCalled();
});
