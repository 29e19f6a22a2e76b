/** Batches: lists of operations in one request. */

import { hash } from 'node:crypto';
import { OperationTypeNode } from 'graphql';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { runInOrder } from '../../../src/extensions/batching/batch.ts';
import { jsonResponse } from '../../../src/http/response.ts';
import { createAccount } from '../../support/accounts.ts';
import { newExchange } from '../../support/exchanges.ts';
import { openBeside, openTestGateway, postGraphql, type TestGateway } from '../../support/gateway.ts';
import { gatewayBeside, gatewayWith } from '../../support/setUp.ts';

const { gateway, alice } = await gatewayWith(['alice'], { settings: { BATCHING: 'on' } });
const limited = await gatewayBeside(gateway.database, {
  settings: { BATCHING: 'on', RATE_LIMIT: '10', MAX_COMPLEXITY: '250' },
});

interface PostOptions {
  readonly to?: TestGateway;
  readonly token?: string;
  readonly accept?: string;
}

async function post(body: unknown, { to = gateway, token = alice.token, accept }: PostOptions = {}) {
  const headers = accept === undefined ? {} : { Accept: accept };
  const response = await postGraphql(to, token === '' ? undefined : token, body, headers);
  return { status: response.status, headers: response.headers, body: await response.json() };
}

const viewer = { query: '{ viewer { username } }' };
const isAlice = { data: { viewer: { username: 'alice' } } };
const active = { query: '{ activeDttTemplate { databaseId } }' };
const isActive = (index: number) => ({
  data: { activeDttTemplate: { databaseId: alice.dttTemplates[index] } },
});
const activate = (index: number) => ({
  query:
    'mutation ($id: Int!) { activateTemplate(template: { databaseId: $id }) { template { databaseId } } }',
  variables: { id: alice.dttTemplates[index] },
});
const isActivated = (index: number) => ({
  data: { activateTemplate: { template: { databaseId: alice.dttTemplates[index] } } },
});
const error = (message: string) => ({ errors: [{ message, extensions: { code: 'BAD_USER_INPUT' } }] });

describe('a batch', () => {
  it('gets the responses in order as application/json, each equal to that of the operation sent alone', async () => {
    const operations = [
      viewer,
      {
        query:
          'query One($n: Int!) { dttDevices(first: $n) { totalCount } } query Two { viewer { username } }',
      },
      { query: 'query One($n: Int!) { dttDevices(first: $n) { totalCount } }', variables: { n: 1 } },
      { query: '{ dttDevices(first: 0) { totalCount } viewer { username } }' },
      { query: '{ nobody }' },
      { query: '{' },
      { ...viewer, extensions: { persistedQuery: {} } },
      { query: 'query A { viewer { username } } query B { viewer { username } }', operationName: 'B' },
      { query: '{ viewer { username } }', variables: [] },
      {},
    ];
    for (let time = 0; time < 2; time++) {
      const alone = [];
      for (const operation of operations) alone.push((await post(operation)).body);
      const { status, headers, body } = await post(operations, {
        accept: 'application/graphql-response+json, application/json;q=0.9',
      });
      expect(status).toBe(200);
      expect(headers.get('Content-Type')).toBe('application/json; charset=utf-8');
      expect(body).toEqual(alone);
      const { headers: ofOne } = await post(viewer);
      for (const name of ['Vary', 'Cache-Control']) expect(headers.get(name)).toBe(ofOne.get(name));
    }
  });

  it('has one line in the log, which names none of its operations, with the code of the first error', async () => {
    const settings = { BATCHING: 'on' };
    const logged = await openTestGateway(await openBeside(gateway.database), { settings, logLevel: 'info' });
    onTestFinished(() => logged.close());
    await post([viewer, { query: '{ nobody }' }, active], { to: logged });
    await expect
      .poll(() => logged.log.map((line) => JSON.parse(line)))
      .toMatchObject([{ operation: 'batch', code: 'BAD_USER_INPUT' }]);
  });

  it('runs its mutations in order, and a query after a mutation sees the change', async () => {
    const { body } = await post([
      activate(0),
      active,
      activate(1),
      active,
      { query: 'mutation { activateTemplate(template: { databaseId: 999999 }) { scheduleTypeChanged } }' },
      activate(0),
      viewer,
      active,
    ]);
    expect(body[4].errors[0].extensions.code).toBe('NOT_FOUND');
    expect([...body.slice(0, 4), ...body.slice(5)]).toEqual([
      isActivated(0),
      isActive(0),
      isActivated(1),
      isActive(1),
      isActivated(0),
      isAlice,
      isActive(0),
    ]);
    // The same query alone does not get a stale cached response either.
    expect((await post(active)).body).toEqual(isActive(0));
  });

  it('gets an error in place of each subscription and of each item that is not an operation', async () => {
    const { status, body } = await post([
      { query: 'subscription { activeDttTemplate { name } }' },
      1,
      null,
      [viewer],
      { ...viewer, variables: { a: JSON.parse(`${'['.repeat(1_000)}${']'.repeat(1_000)}`) } },
      viewer,
    ]);
    const noObject = (type: string) => error(`Expected params to be an object but given ${type}.`);
    expect(status).toBe(200);
    expect(body).toEqual([
      error('A subscription cannot be part of a batch; send it in a request of its own'),
      noObject('number'),
      noObject('null'),
      noObject('array'),
      error('The variables are nested too deeply'),
      isAlice,
    ]);
    expect(gateway.log).toEqual([]);
  });
});

it('an operation that fails has a masked error as its response, and is reported', async () => {
  const failed = vi.fn();
  const exchange = newExchange({ failed });
  const failure = new Error('secret');
  const operations = ['a', 'M', 'b'].map((cacheKey) => ({
    type: cacheKey === 'M' ? OperationTypeNode.MUTATION : OperationTypeNode.QUERY,
    task: { cacheKey, prepare: () => Promise.reject(new Error('not expected')) },
  }));
  const responses = await runInOrder(exchange, operations, async ({ cacheKey: name = '' }) => {
    if (name !== 'b') throw failure;
    return jsonResponse(200, JSON.stringify(name));
  });
  const masked =
    '{"errors":[{"message":"Internal server error","extensions":{"code":"INTERNAL_SERVER_ERROR"}}]}';
  expect(responses.map(({ body }) => body.toString())).toEqual([masked, masked, '"b"']);
  expect(failed.mock.calls).toEqual([
    [exchange, failure],
    [exchange, failure],
  ]);
});

it('an operation of a batch is found by a hash that an earlier one registers, and not by one of a later one', async () => {
  const both = ['One', 'Two'].map((name) => {
    const query = `query ${name} { viewer { username } }`;
    const byHash = { extensions: { persistedQuery: { sha256Hash: hash('sha256', query, 'hex') } } };
    return [{ query, ...byHash }, byHash];
  });
  const [one = [], two = []] = both;
  const notFound = { errors: [expect.objectContaining({ message: 'PersistedQueryNotFound' })] };
  const { body } = await post([...one, ...two.toReversed()]);
  expect(body).toEqual([isAlice, isAlice, notFound, isAlice]);
});

describe('a batch is rejected', () => {
  it('while batching is off', async () => {
    const off = await gatewayBeside(gateway.database);
    const message =
      'The request is a batch of 1 operation, and batches are not run (BATCHING=off); send each in a request of its own';
    const accept = 'application/graphql-response+json';
    expect(await post([viewer], { to: off, accept })).toMatchObject({ status: 400, body: error(message) });
  });

  it.each<[string, unknown, string]>([
    ['if it has no operations', [], 'The request body is an empty list; send an object with a query'],
    [
      'if it has more than ten operations',
      Array(11).fill(viewer),
      'The request is a batch of 11 operations; at most 10 are allowed',
    ],
  ])('%s', async (_, body, message) => {
    for (const accept of ['application/json', 'application/graphql-response+json'])
      expect(await post(body, { accept })).toMatchObject({ status: 400, body: error(message) });
  });

  it('if it comes without a token', async () => {
    const { status, headers, body } = await post([viewer], { token: '' });
    expect(status).toBe(401);
    expect(headers.get('WWW-Authenticate')).toBe('Bearer');
    expect(body.errors[0]).toMatchObject({
      message: 'Unauthorized: the request has no Authorization header, such as Authorization: Bearer TOKEN',
      extensions: { code: 'UNAUTHENTICATED' },
    });
  });

  it('if its variables have too many values together', async () => {
    const query = 'query ($where: DttSessionFilter) { dttSessions(where: $where) { totalCount } }';
    const where = { and: Array.from({ length: 2_600 }, () => ({})) };
    const part = { query, variables: { where } };
    const { status, body } = await post([part, part]);
    expect([status, body.errors[0].message]).toEqual([
      400,
      'The variables have more than 5000 values; at most 5000 are allowed',
    ]);
  });

  it('if it is too complex as a whole, before any of its operations runs', async () => {
    const list = { query: '{ dttSessions(first: 100) { nodes { id } } }' };
    const [before] = (await post([active])).body;
    const isAlmost = [list, list, { query: '{ dttSessions(first: 44) { nodes { id } } }' }];
    for (const each of [[list], isAlmost]) expect((await post(each, { to: limited })).status).toBe(200);
    const { status, body } = await post([activate(2), list, list, list], { to: limited });
    expect(status).toBe(400);
    expect(body.errors[0].message).toMatch(/^The batch has a complexity of \d+; at most 250 is allowed$/);
    expect((await post([active])).body).toEqual([before]);
  });

  it('if its token exceeds the rate limit, for which each operation counts as a request', async () => {
    const bob = await createAccount(gateway.database.client, 'bob');
    const ask = (count: number) => post(Array(count).fill(viewer), { to: limited, token: bob.token });
    const left = async (count: number) => (await ask(count)).headers.get('RateLimit')?.match(/r=(\d+)/)?.[1];
    expect(await left(1)).toBe('9');
    expect(await left(4)).toBe('5');
    const { status, headers, body } = await ask(6);
    expect(status).toBe(429);
    expect(headers.get('Retry-After')).toMatch(/^\d+$/);
    expect(body.errors[0]).toEqual({
      message: 'Too many requests',
      extensions: { code: 'TOO_MANY_REQUESTS', retryAfter: expect.any(Number) },
    });
  });
});
