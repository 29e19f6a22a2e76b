/**
 * Typed GraphQL documents: `npm run codegen` derives the types of variables and results from the text, so that the compiler
 * rejects the use of a field that the schema does not have.
 */

import type { TypedDocumentNode } from '@graphql-typed-document-node/core';
import { gql, stringifyDocument } from '@urql/core';
import type { graphql as typed } from '../../generated/gql.ts';

/** The texts of all fragments, by name. A module that spreads a fragment imports the module that defines it. */
const fragments = new Map<string, string>();

/**
 * Parses a document, together with the fragments that it spreads.
 * @throws if it spreads a fragment that was not defined yet.
 */
function parse(text: string) {
  const spread = new Set<string>();
  addFragments(text, spread);
  const name = /^\s*fragment\s+(\w+)/.exec(text)?.[1];
  if (name) fragments.set(name, text);
  return gql([text, ...spread].join('\n'));
}

/** Adds the fragments that a text spreads, and those that they spread in turn. */
function addFragments(text: string, spread: Set<string>): void {
  for (const [, name = ''] of text.matchAll(/\.\.\.\s*(?!on\b)(\w+)/g)) {
    const fragment = fragments.get(name);
    if (fragment === undefined) throw new Error(`There is no fragment ${name} yet.`);
    if (spread.has(fragment)) continue;
    spread.add(fragment);
    addFragments(fragment, spread);
  }
}

// The generated function has an overload for each text that this one is called with.
export const graphql = parse as typeof typed;

/** The text of a document as it is sent to the gateway, to be shown to people. */
export const textOf = <Data, Variables>(document: TypedDocumentNode<Data, Variables>): string =>
  stringifyDocument(document);
