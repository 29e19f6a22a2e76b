/** Compiled operations give the same responses as their first execution, whatever their conditions and names. */

import { parse } from 'graphql';
import { describe, expect, it } from 'vitest';
import { countVariants, executions } from '../../../src/schema/operation.ts';
import { graphqlOnce, graphqlOnEveryPath } from '../../support/gateway.ts';
import { gatewayWith } from '../../support/setUp.ts';

const { gateway, alice } = await gatewayWith(['alice']);

describe('an operation that is executed again', () => {
  it.each([
    '__MAGIC_DATE__33a9e76d_02e0_4128_8e92_3530ad3da74d(globalThis.ranText = true)',
    '\\u2028"; globalThis.ranText = true; "',
  ])('does not execute text of a client as code: %s', async (text) => {
    const literal = JSON.stringify(text);
    for (const query of [
      `{ dttSessions(after: ${literal}) { nodes { id } } }`,
      `{ node(id: ${literal}) { id } }`,
      `query ($id: ID = ${literal}) { nodes(ids: [$id, ${literal}]) { id } }`,
    ]) {
      const { errors } = await graphqlOnEveryPath(gateway, alice.token, query);
      expect(new Set(errors?.map(({ extensions }) => extensions?.code))).toEqual(new Set(['BAD_USER_INPUT']));
    }
    expect(globalThis).not.toHaveProperty('ranText');
  });

  it('is compiled for up to 8 combinations of its conditions, and interpreted for the others', async () => {
    const names = ['a', 'b', 'c', 'd'];
    const document = `query (${names.map((name) => `$${name}: Boolean!`).join()}) {
      viewer { databaseId ${names.map((name) => `${name}: username @include(if: $${name})`).join(' ')} } }`;
    const combinations = Array.from({ length: 16 }, (_, bits) =>
      Object.fromEntries(names.map((name, index) => [name, (bits & (1 << index)) > 0])),
    );
    await graphqlOnce(gateway, alice.token, document, { ...combinations[0], unused: true });
    const before = { ...executions };
    for (const variables of combinations) {
      const { data } = await graphqlOnce(gateway, alice.token, document, variables);
      const named = names.filter((name) => variables[name]).map((name) => [name, 'alice']);
      expect(data).toEqual({ viewer: { databaseId: alice.userId, ...Object.fromEntries(named) } });
    }
    expect(executions.compiled - before.compiled).toBe(8);
    expect(executions.interpreted - before.interpreted).toBe(8);
    expect(countVariants(parse(document))).toBe(8);
    expect(countVariants(parse('query ($a: Boolean!) { viewer { rank @skip(if: $a) } }'))).toBe(2);
    expect(countVariants(parse('{ viewer { rank @skip(if: true) } }'))).toBe(1);
  });
});
