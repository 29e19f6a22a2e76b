/** Tools of a mirror, which relays to the upstream what it cannot respond to itself. */

import { describe, expect, it } from 'vitest';
import { messages } from '../../src/errors.ts';
import { arrive, openForEachTest } from '../support/frontedService.ts';
import { type Fault, faults } from '../support/standIn/faults.ts';
import { connect, textOf } from './client.ts';

const alice = 'token-of-alice';

const openService = openForEachTest();
async function open() {
  const { gateway, service } = await openService({ settings: { MCP: 'write', UPSTREAM_INTERVAL: '600' } });
  await arrive(gateway, alice);
  return { gateway, service, client: await connect(gateway, alice) };
}

describe('a tool over a mirror', () => {
  it('requests only paths of its own route from the upstream', async () => {
    const { client, service } = await open();
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

  it('gives the response of the upstream for a record that is not mirrored, and an error if it is invalid', async () => {
    const { client, gateway, service } = await open();
    const ask = async () => textOf(await client.callTool({ name: 'dttTemplate', arguments: { id: 777 } }));
    expect(await ask()).toBe('DTT template not found');
    const path = '/dtt/templates/777';
    expect(service.count({ path })).toBe(1);
    const misbehave = (fault: Fault) => {
      service.behave();
      service.misbehave(fault, { path: new RegExp(`^${path}$`) });
    };
    for (const reply of [null, [], 7, {}, { ok: true }]) {
      misbehave({ instead: () => ({ status: 200, body: reply }) });
      expect(await ask()).toBe(messages.upstreamUnreadable);
    }
    misbehave(faults.html);
    expect(await ask()).toBe(messages.upstreamUnreadable);
    expect(gateway.log.filter((line) => JSON.parse(line).level >= 50)).toEqual([]);
    await client.close();
  });
});
