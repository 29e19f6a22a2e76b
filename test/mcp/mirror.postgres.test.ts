/** Tools in front of an upstream, which run over the mirror. */

import { expect, it } from 'vitest';
import { messages } from '../../src/errors.ts';
import { arrive, openForEachTest } from '../support/frontedService.ts';
import { connect, textOf } from './client.ts';

const alice = 'token-of-alice';

const open = openForEachTest();

it('a tool over a mirror requests only paths of its own route from the upstream', async () => {
  const { gateway, service } = await open({ settings: { MCP: 'write', UPSTREAM_INTERVAL: '600' } });
  await arrive(gateway, alice);
  const client = await connect(gateway, alice);
  for (const name of ['activateDttTemplate', 'dttTemplate', 'user'])
    for (const id of ['import', 'active', '..', '', '1', -1, 1.5, null, true, [1], { a: 1 }, '\ud800']) {
      const result = await client.callTool({ name, arguments: { id } });
      expect(textOf(result), `${name} ${JSON.stringify(id)}`).toBe(
        name === 'activateDttTemplate' ? messages.templateNotOwned : messages.invalidId,
      );
    }
  // The mirror also refreshes the account meanwhile.
  const requested = service.requests.map(({ method, path }) => `${method} ${path.split('?', 1)}`);
  expect(
    requested.filter(
      (each) => !/^GET .*\/(dtt|lkbx|ossm|templates|sessions|\d+|me|active|latest)$/.test(each),
    ),
  ).toEqual([]);
  await client.close();
});
