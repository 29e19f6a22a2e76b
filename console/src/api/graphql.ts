/**
 * Documents with types: `npm run codegen` infers the types from the text, so that a field which the schema does not have is
 * an error where it is read.
 */

import type { TypedDocumentNode } from '@graphql-typed-document-node/core';
import { gql, stringifyDocument } from '@urql/core';
import type { graphql as typed } from '../../generated/gql.ts';

/** The texts of all fragments, by name. A fragment is written before what spreads it, in a module that this one imports. */
const fragments = new Map<string, string>();

/**
 * Parses a document, together with the fragments that it spreads.
 * @throws if it spreads a fragment that was not written yet.
 */
function parse(text: string) {
  const parts = new Set<string>();
  addSpread(text, parts);
  const name = /^\s*fragment\s+(\w+)/.exec(text)?.[1];
  if (name) fragments.set(name, text);
  return gql([text, ...parts].join('\n'));
}

function addSpread(text: string, parts: Set<string>): void {
  for (const [, name = ''] of text.matchAll(/\.\.\.\s*(?!on\b)(\w+)/g)) {
    const fragment = fragments.get(name);
    if (fragment === undefined) throw new Error(`There is no fragment ${name} yet.`);
    if (parts.has(fragment)) continue;
    parts.add(fragment);
    addSpread(fragment, parts);
  }
}

// The types of what is written are those of the generated function, which has the same texts.
export const graphql = parse as typeof typed;

/** The text of a document as it goes to the gateway, for people to read. */
export const textOf = <Data, Variables>(document: TypedDocumentNode<Data, Variables>): string =>
  stringifyDocument(document);
