/**
 * The names under which connections remember statements, so that PostgreSQL parses and plans each only once. Both
 * the server and `pg` remember them for good unless told otherwise, and whoever writes queries makes as many texts as
 * they like: so a connection remembers those that it used last, and has the server forget the others.
 */

import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type pg from 'pg';

/** The most statements that a connection remembers: many times what the operations of a frontend come to. */
export const maxStatements = 250;

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

/** What `pg` has of a connection, though its types do not say all of it. */
interface Connection {
  readonly parsedStatements: Record<string, string>;
  parse(statement: { readonly name?: string }): void;
  bind(values: { readonly statement?: string }): void;
  close(what: { readonly type: 'S'; readonly name: string }): void;
}

/** Has a new connection remember so many statements at most. */
export function limitStatements(client: pg.Client, max = maxStatements): void {
  const connection = client.connection as unknown as Connection;
  const { parse, bind } = connection;
  const remembered = new LRUCache<string, true>({
    max,
    dispose(_value, name, reason) {
      if (reason !== 'evict') return;
      delete connection.parsedStatements[name];
      // The server does what it is told in order, and what it says to this is of no interest.
      connection.close({ type: 'S', name });
    },
  });
  connection.parse = (statement) => {
    // Before the statement is sent: if it is wrong, the server passes over what comes behind it.
    if (statement.name) remembered.set(statement.name, true);
    parse.call(connection, statement);
  };
  connection.bind = (values) => {
    if (values.statement) remembered.get(values.statement);
    bind.call(connection, values);
  };
}
