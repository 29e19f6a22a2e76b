/** Compiled operations give the same responses as their first execution, whatever their conditions and names. */

import { parse } from 'graphql';
import { describe, expect, it } from 'vitest';
import { countVariants, executions } from '../../../src/schema/operation.ts';
import { graphqlOnce, graphqlOnEveryPath } from '../../support/gateway.ts';
import { gatewayWith } from '../../support/setUp.ts';

const { gateway, alice } = await gatewayWith(['alice']);

const user = { username: 'alice', rank: 0 };

/** Each document is executed with several variables one after the other, of which none must affect the next response. */
const conditional: [name: string, document: string, responses: [variables: object, data: object][]][] = [
  [
    'a fragment that is conditional in one place but not in another',
    `query ($a: Boolean!) { viewer { league ...F @include(if: $a) } users(first: 1) { nodes { ...F } } }
     fragment F on User { username rank }`,
    [
      [{ a: false }, { viewer: { league: 0 }, users: { nodes: [user] } }],
      [{ a: true }, { viewer: { league: 0, ...user }, users: { nodes: [user] } }],
      [{ a: false }, { viewer: { league: 0 }, users: { nodes: [user] } }],
    ],
  ],
  [
    'a field that is selected twice, once with a condition that skips it',
    'query ($a: Boolean = true) { viewer { rank @skip(if: $a) username rank @include(if: $a) @skip(if: false) } }',
    [
      [{}, { viewer: { username: 'alice', rank: 0 } }],
      [{ a: false }, { viewer: { rank: 0, username: 'alice' } }],
    ],
  ],
  [
    'too many groups that a condition leaves out',
    `query ($a: Boolean!, $b: String = "UTC") { dttSessionStats(by: [TEMPLATE, TRAINER, SEGMENT_TYPE], maxGroups: 1, timeZone: $b) {
       total { sessionCount } groups @skip(if: $a) { sessionCount } } }`,
    [
      [{ a: true }, { dttSessionStats: { total: { sessionCount: 6 } } }],
      [{ a: true, b: null }, { dttSessionStats: { total: { sessionCount: 6 } } }],
    ],
  ],
];

/** The same for names of properties that every object has. */
const objectProperties = ['__proto__', 'constructor'].map((name): (typeof conditional)[0] => [
  `a variable, an alias and a fragment with the name ${name}`,
  `query ($${name}: Boolean = true) { ${name}: viewer { ${name}: rank ...${name} @skip(if: $${name}) } }
     fragment ${name} on User { username }`,
  [
    [{}, { [name]: { [name]: 0 } }],
    [{ [name]: false }, { [name]: { [name]: 0, username: 'alice' } }],
  ],
]);

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
      expect(errors).toEqual([
        expect.objectContaining({ extensions: expect.objectContaining({ code: 'BAD_USER_INPUT' }) }),
      ]);
    }
    expect(globalThis).not.toHaveProperty('ranText');
  });

  it.each([...conditional, ...objectProperties])(
    'returns the same response on every path of execution: %s',
    async (_, document, responses) => {
      for (const [variables, data] of responses) {
        const response = await graphqlOnEveryPath(gateway, alice.token, document, { ...variables });
        expect(response.errors).toBeUndefined();
        expect(JSON.stringify(response.data)).toBe(JSON.stringify(data));
      }
    },
  );

  it('treats null for a variable with a default the same on every path of execution', async () => {
    const document = 'query ($a: Boolean = true) { viewer { username @include(if: $a) } }';
    expect((await graphqlOnEveryPath(gateway, alice.token, document)).data).toEqual({
      viewer: { username: 'alice' },
    });
    const { errors } = await graphqlOnEveryPath(gateway, alice.token, document, { a: null });
    expect(errors).toEqual([
      expect.objectContaining({
        message: expect.stringContaining('Argument "if" of non-null type "Boolean!" must not be null'),
        extensions: { code: 'BAD_USER_INPUT', argument: 'if' },
      }),
    ]);
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
