/** The reference of the schema. */

import { buildSchema, parse, validate } from 'graphql';
import { expect, it } from 'vitest';
import { sectionsOf } from '../../src/pages/schemaPage.ts';
import { schema } from '../../src/schema/schema.ts';

const own = sectionsOf(schema, true).join('\n');

it('has an example of every query and mutation, which is valid and opens in GraphiQL', () => {
  const examples = [...own.matchAll(/href="graphql\?query=([^"]*)"/g)].map(([, query = '']) =>
    decodeURIComponent(query),
  );
  const roots = [schema.getQueryType(), schema.getMutationType()];
  const names = roots.flatMap((root) => Object.keys(root?.getFields() ?? {}));
  expect(examples).toHaveLength(names.length);
  for (const [index, example] of examples.entries()) {
    expect(example).toContain(names[index]);
    expect([example, validate(schema, parse(example))]).toEqual([example, []]);
  }
  expect(sectionsOf(schema, false).join()).not.toContain('graphql?');
});

it('has a card for every type that is linked to, and links to all of them', () => {
  const ids = [...own.matchAll(/<details class="card" id="([^"]*)"/g)].map(([, id]) => id);
  expect(new Set(ids).size).toBe(ids.length);
  const linked = new Set([...own.matchAll(/href="#([^"]*)"/g)].map(([, id]) => id));
  const types = ids.filter((id) => !/^(query|mutation)-/.test(id ?? ''));
  expect(types.filter((id) => !linked.has(id))).toEqual([]);
  expect([...linked].filter((id) => !ids.includes(id))).toEqual([]);
});

it('has descriptions, arguments with their defaults, deprecations and the values of enums', () => {
  const page = sectionsOf(
    buildSchema(`
      "Where a word comes from."
      enum Origin { "Since <1066>." NORMAN OLD @deprecated(reason: "Use NORMAN.") }
      interface Named { name: String }
      type Word implements Named { name: String, origin(of: Origin = NORMAN, "At least 1." depth: [Int!]! = [2]): Origin! }
      type Query { "A word. Use \`name\`." word(name: ID!): Word, old: Int @deprecated(reason: "Use \`word\`.") }
    `),
    false,
  ).join('\n');
  for (const part of [
    '<summary><code>Origin</code> Where a word comes from.</summary>',
    '<td><code>NORMAN</code> </td><td>Since &lt;1066&gt;.</td>',
    '<td><code>OLD</code> </td><td><p><b>Deprecated.</b> Use NORMAN.</p></td>',
    '<summary><code>word</code> A word.</summary>\n<div><p>Use <code>name</code>.</p>',
    '<p>Returns <a href="#Word">Word</a>.</p>',
    '<td><code>of</code> <a href="#Origin">Origin</a> = NORMAN</td>',
    '<td><code>depth</code> [Int!]! = [2]</td><td>At least 1.</td>',
    '<p><b>Deprecated.</b> Use <code>word</code>.</p>',
    '<p>Types: <a href="#Word">Word</a>.</p>',
  ])
    expect(page).toContain(part);
});
