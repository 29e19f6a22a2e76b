/** Plugins of others: what they are called with, and what clients get if they do what they should not. */

import type { Plugin } from 'graphql-yoga';
import { expect, it, vi } from 'vitest';
import { openBeside, openTestGateway, postGraphql } from '../../support/gateway.ts';
import { databaseWith } from '../../support/setUp.ts';

const { database, alice } = await databaseWith('alice');

/** Sends an operation to a gateway with the plugin, and returns the response up to its first error. */
async function exchange(plugin: Plugin, accept: string, query = '{ viewer { username } }') {
  const extensions = [{ settings: {}, plugins: async () => [plugin] }];
  const printed = vi.spyOn(console, 'error');
  const gateway = await openTestGateway(await openBeside(database), { extensions });
  const response = await postGraphql(gateway, alice.token, { query }, { Accept: accept });
  let text = '';
  for await (const piece of response.body ?? []) {
    text += Buffer.from(piece).toString();
    // A subscription goes on.
    if (text.includes('"errors"')) break;
  }
  await gateway.close();
  // What is hidden from clients is in the log alone.
  expect(printed).not.toHaveBeenCalled();
  return { text, headers: response.headers, log: gateway.log };
}
const send = async (...given: Parameters<typeof exchange>) => (await exchange(...given)).text;

const json = 'application/json';
const events = 'text/event-stream';
const multipart = 'multipart/mixed;subscriptionSpec=1.0';
const masked = 'Internal server error';

it.each<[hook: string, pluginOf: (called: () => void) => Plugin]>([
  ['onRequest', (called) => ({ onRequest: called })],
  ['onRequestParse', (called) => ({ onRequestParse: called })],
  ['onResultProcess', (called) => ({ onResultProcess: called })],
  ['onResponse', (called) => ({ onResponse: called })],
  ['onPluginInit', (called) => ({ onPluginInit: ({ addPlugin }) => addPlugin({ onResponse: called }) })],
])(
  'a plugin that waits for requests or responses of HTTP is called for a POST of JSON: %s',
  async (_, pluginOf) => {
    const called = vi.fn();
    await send(pluginOf(called), json);
    expect(called).toHaveBeenCalledOnce();
  },
);

it('a response of a plugin says nothing about the connection', async () => {
  const names = ['content-encoding', 'keep-alive', 'transfer-encoding', 'upgrade'];
  const said = Object.fromEntries(
    ['x-own', 'connection', 'content-length', ...names].map((name) => [name, '1']),
  );
  const answer: Plugin = {
    onRequest: ({ endResponse }) => endResponse(new Response('a text', { headers: said })),
  };
  const { text, headers } = await exchange(answer, json);
  const { connection, 'content-length': length, ...others } = Object.fromEntries(headers);
  expect({ text, connection, length }).toEqual({ text: 'a text', connection: 'keep-alive', length: '6' });
  expect(others).toMatchObject({ 'x-own': '1', 'keep-alive': expect.stringContaining('timeout') });
  for (const name of ['content-encoding', 'transfer-encoding', 'upgrade'])
    expect(others).not.toHaveProperty(name);
});

/** An error as a plugin for JavaScript may make it. */
const bare = { errors: [{ message: 'limited' }] } as object;

it.each<[what: string, plugin: Plugin]>([
  ['before the execution', { onParams: ({ setResult }) => setResult(bare) }],
  ['after it', { onExecutionResult: ({ setResult }) => setResult(bare) }],
])('an error without extensions is sent as it is: %s', async (_what, plugin) => {
  expect(await send(plugin, json)).toBe('{"errors":[{"message":"limited"}]}');
  expect(await send(plugin, events)).toContain('{"errors":[{"message":"limited"}]}');
});

it.each([json, events, multipart])('a result that is no JSON is an error: %s', async (accept) => {
  const setBigInt: Plugin = {
    onExecute: () => ({ onExecuteDone: ({ setResult }) => setResult({ data: { viewer: 1n } }) }),
  };
  const text = await send(setBigInt, accept);
  expect(text).toContain(`"message":"${masked}"`);
});

it.each([events, multipart])('a result of a subscription that is no JSON is an error: %s', async (accept) => {
  const seen: unknown[] = [];
  const setBigInt: Plugin = {
    onSubscribe: () => ({
      onSubscribeResult: () => ({
        onNext({ result, setResult }) {
          seen.push(result);
          setResult({ data: { viewer: 1n } });
        },
      }),
    }),
  };
  const { text, log } = await exchange(setBigInt, accept, 'subscription { viewer { username } }');
  expect(seen).toEqual([{ data: { viewer: { username: 'alice' } } }]);
  expect(text).toContain(`"message":"${masked}"`);
  expect(log.join()).toContain('BigInt');
});

it('a query that a plugin has made a mutation is refused, and changes nothing', async () => {
  const mutate: Plugin = {
    onParams({ params, setParams }) {
      setParams({ ...params, query: (params.query ?? '').replace('query', 'mutation') });
    },
  };
  const [id] = alice.dttTemplates;
  const query = `query { activateTemplate(template: { databaseId: ${id} }) { scheduleTypeChanged } }`;
  const text = await send(mutate, json, query);
  expect(text).toContain(masked);
  expect(await database.client.user.count({ where: { NOT: { activeTemplateId: null } } })).toBe(0);
});
