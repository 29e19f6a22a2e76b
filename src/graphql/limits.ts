/** The limits that a document has to keep before it is validated. They are counted in the document alone, and each selection once. */

import { type DocumentNode, type GraphQLError, Kind, type SelectionSetNode, visit } from 'graphql';
import type { Config } from '../config/config.ts';
import { fragmentsOf } from '../schema/operation.ts';
import { requestError } from './overHttp.ts';

/** In characters. Tools that put a prefix before the aliases of a client make shorter ones. */
const longestAlias = 100;

/**
 * How many lines an operation may have for each of its `MAX_TOKENS`. To say where an error is, graphql-js counts the
 * lines before it, once for each error: 500 errors behind 240,000 empty lines took 16 s.
 */
const linesPerToken = 2;

/**
 * How many characters the arguments of an operation may have for each of its `MAX_TOKENS`. Error messages print a wrong
 * argument whole, once for each record.
 */
const argumentCharactersPerToken = 20;

/** How many aliases, and how many directives, a document may have. */
const mostAliases = 30;
const mostDirectives = 30;

/** An error for each limit that the document exceeds. The document need not be valid. */
export function overLimits(
  document: DocumentNode,
  { MAX_DEPTH, MAX_TOKENS }: Pick<Config, 'MAX_DEPTH' | 'MAX_TOKENS'>,
): GraphQLError[] {
  const lines = document.loc?.endToken.line ?? 0;
  const maxLines = linesPerToken * MAX_TOKENS;
  const maxArgumentCharacters = argumentCharactersPerToken * MAX_TOKENS;
  let argumentCharacters = 0;
  let aliases = 0;
  let longest = 0;
  let directives = 0;
  visit(document, {
    Field({ alias }) {
      if (!alias) return;
      aliases++;
      longest = Math.max(longest, alias.value.length);
    },
    Argument({ value: { loc } }) {
      if (loc) argumentCharacters += loc.end - loc.start;
    },
    Directive: () => void directives++,
  });
  const depth = depthOf(document);
  const found = [
    lines > maxLines && `The operation has ${lines} lines; at most ${maxLines} are allowed`,
    argumentCharacters > maxArgumentCharacters &&
      `The arguments of the operation have ${argumentCharacters} characters; at most ${maxArgumentCharacters} are allowed`,
    depth > MAX_DEPTH && `The operation is ${depth} levels deep; at most ${MAX_DEPTH} are allowed`,
    aliases > mostAliases && `The operation has ${aliases} aliases; at most ${mostAliases} are allowed`,
    // A response repeats an alias for every record.
    longest > longestAlias &&
      `The operation has an alias of ${longest} characters; at most ${longestAlias} are allowed`,
    directives > mostDirectives &&
      `The operation has ${directives} directives; at most ${mostDirectives} are allowed`,
  ];
  return found.filter((message) => message !== false).map(requestError);
}

/** How many levels of fields the deepest operation has, those within fragments included. */
function depthOf(document: DocumentNode): number {
  const fragments = fragmentsOf(document);
  const known = new Map<string, number>();
  const below = (set: SelectionSetNode | undefined): number => {
    let deepest = 0;
    for (const selection of set?.selections ?? []) {
      const depth =
        selection.kind === Kind.FRAGMENT_SPREAD
          ? inFragment(selection.name.value)
          : below(selection.selectionSet) + (selection.kind === Kind.FIELD ? 1 : 0);
      deepest = Math.max(deepest, depth);
    }
    return deepest;
  };
  const inFragment = (name: string): number => {
    const found = known.get(name);
    if (found !== undefined) return found;
    // Ends the recursion for a fragment that spreads itself, which the validation rejects later.
    known.set(name, 0);
    const depth = below(fragments.get(name)?.selectionSet);
    known.set(name, depth);
    return depth;
  };
  return Math.max(
    ...document.definitions.map((node) =>
      node.kind === Kind.OPERATION_DEFINITION ? below(node.selectionSet) : 0,
    ),
  );
}
