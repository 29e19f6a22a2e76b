/** The names of prepared statements, so that PostgreSQL parses and plans each statement only once. */

import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { maxStatements } from './reader/batch.ts';

/** How many texts have a name at hand. */
const maxNames = 4 * maxStatements;

/** In characters: several times what any operation comes to without a filter. The plan of a filter can be very large. */
const longestRemembered = 8_000;

/**
 * Gives each SQL text a name, but the empty one to those that are too long to be remembered. It is made of the text: where
 * a pooler has several clients use one session, whatever goes by that name there is what was meant.
 */
export function createStatementNames(): (text: string) => string {
  const names = new LRUCache<string, string>({ max: maxNames });
  return (text) => {
    if (text.length > longestRemembered) return '';
    const known = names.get(text);
    if (known !== undefined) return known;
    const name = `dovetail_${createHash('sha256').update(text).digest('base64url').slice(0, 22)}`;
    names.set(text, name);
    return name;
  };
}
