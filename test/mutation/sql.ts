/** Faults in SQL, which is text to Stryker's mutators: a condition that is missing or turned around, rows in another order or number. */

import { types } from '@babel/core';
import { allMutators } from './node_modules/@stryker-mutator/instrumenter/dist/src/mutators/mutate.js';

const isSql = /\b(SELECT|FROM|WHERE|UPDATE|INSERT|DELETE|JOIN|AND|OR|ORDER BY|SET|VALUES|RETURNING)\b/;

/** What is replaced, and by what. */
export type Rule = readonly [RegExp, string | ((found: string) => string)];

export const sqlRules: readonly Rule[] = [
  // A condition up to the next one, without parentheses in it.
  [/ (AND|OR) (?:(?! AND | OR )[^()\n])+/g, ''],
  [/ AND /g, ' OR '],
  [/ OR /g, ' AND '],
  [/ IS NULL/g, ' IS NOT NULL'],
  [/ IS NOT NULL/g, ' IS NULL'],
  [/ = /g, ' <> '],
  [/ <> /g, ' = '],
  [/ IS DISTINCT FROM /g, ' IS NOT DISTINCT FROM '],
  [/ < /g, ' <= '],
  [/ > /g, ' >= '],
  [/ <= /g, ' < '],
  [/ >= /g, ' > '],
  [/NOT EXISTS/g, 'EXISTS'],
  [/ DESC/g, ' ASC'],
  [/NULLS LAST/g, 'NULLS FIRST'],
  [/UNION ALL/g, 'UNION'],
  [/DISTINCT /g, ''],
  [/ FOR (NO KEY )?UPDATE/g, ''],
  [/LEFT JOIN/g, 'JOIN'],
];

/** The text with one fault each, and what the fault replaces. */
export function* faultsIn(text: string, rules = sqlRules): Generator<{ text: string; fault: string }> {
  for (const [pattern, replacement] of rules)
    for (const { index, 0: found } of text.matchAll(pattern)) {
      const before = text.slice(0, index);
      const changed = typeof replacement === 'string' ? replacement : replacement(found);
      const fault = `line ${before.split('\n').length}: ${found} -> ${changed}`;
      yield { text: before + changed + text.slice(index + found.length), fault };
    }
}

/** What the mutator needs of a path of Babel. */
interface Path {
  readonly node: types.Node;
  readonly parent: types.Node;
}

function* mutate({ node, parent }: Path): Generator<types.Node> {
  if (
    types.isStringLiteral(node) &&
    isSql.test(node.value) &&
    !types.isObjectProperty(parent, { key: node })
  ) {
    for (const { text } of faultsIn(node.value)) yield types.stringLiteral(text);
    return;
  }
  if (!types.isTemplateLiteral(node) || types.isTaggedTemplateExpression(parent)) return;
  const { quasis, expressions } = node;
  if (!isSql.test(quasis.map(({ value }) => value.raw).join(' '))) return;
  for (const [place, { value }] of quasis.entries())
    for (const { text: raw } of faultsIn(value.raw)) {
      const changed = quasis.map((quasi, index) =>
        index === place ? types.templateElement({ raw }) : quasi,
      );
      yield types.templateLiteral(changed, expressions);
    }
}

/** Adds the mutator to those of Stryker, which has no other way to do so. */
export function addSqlMutator() {
  allMutators.push({ name: 'Sql', mutate });
}
