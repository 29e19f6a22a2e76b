/** The reference of the schema. */

import { buildSchema, parse, validate } from 'graphql';
import { expect, it } from 'vitest';
import type { Section } from '../../reading/page.ts';
import { sectionsOf } from '../../reading/schemaReference.ts';
import { schema } from '../../src/schema/schema.ts';

const htmlOf = (sections: readonly Section[]) =>
  sections.flatMap(({ entries }) => entries.flatMap(({ text, samples = '' }) => [text, samples])).join('\n');

const own = sectionsOf(schema);

it('has an example of every query and mutation, which is valid and opens in GraphiQL', () => {
  const examples = [...htmlOf(own).matchAll(/href="graphql\?query=([^"]*)"/g)].map(([, query = '']) =>
    decodeURIComponent(query),
  );
  const roots = [schema.getQueryType(), schema.getMutationType()];
  const names = roots.flatMap((root) => Object.keys(root?.getFields() ?? {}));
  expect(examples).toHaveLength(names.length);
  for (const [index, example] of examples.entries()) {
    expect(example).toContain(names[index]);
    expect([example, validate(schema, parse(example))]).toEqual([example, []]);
  }
});

it('has an entry for every type that is linked to, and links to all of them', () => {
  const ids = own.flatMap(({ entries }) => entries.map(({ id }) => id));
  expect(new Set(ids).size).toBe(ids.length);
  const linked = new Set([...htmlOf(own).matchAll(/href="#([^"]*)"/g)].map(([, id = '']) => id));
  const types = ids.filter((id) => !/^(query|mutation)-/.test(id));
  expect(types.filter((id) => !linked.has(id))).toEqual([]);
  expect([...linked].filter((id) => !ids.includes(id))).toEqual([]);
});

it('has descriptions, arguments with their defaults, deprecations and the values of enums', () => {
  const sections = sectionsOf(
    buildSchema(`
      "Where a word comes from."
      enum Origin { "Since <1066>." NORMAN OLD @deprecated(reason: "Use NORMAN.") }
      interface Named { name: String }
      type Word implements Named { name: String, origin(of: Origin = NORMAN, "At least 1." depth: [Int!]! = [2]): Origin! }
      type Query { "A word. Use \`name\`." word(name: ID!): Word, old: Int @deprecated(reason: "Use \`word\`.") }
    `),
  );
  const page = htmlOf(sections);
  for (const part of [
    '<p>Where a word comes from.</p>',
    '<div><code>NORMAN</code> </div><div>Since &lt;1066&gt;.</div>',
    '<div><code>OLD</code> </div><div><p><b>Deprecated.</b> Use NORMAN.</p></div>',
    '<p>A word. Use <code>name</code>.</p>',
    '<h4>Returns</h4><p><a href="#Word">Word</a></p>',
    '<summary>Fields of Word</summary><ul class="fields"><li><div><code>name</code> <i>String</i></div>',
    '<code>of</code> <i><a href="#Origin">Origin</a> = NORMAN</i>',
    '<code>depth</code> <i>[Int!]! = [2]</i></div><div>At least 1.</div>',
    '<p><b>Deprecated.</b> Use <code>word</code>.</p>',
    '<p>Types: <a href="#Word">Word</a>.</p>',
  ])
    expect(page).toContain(part);
});
