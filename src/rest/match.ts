/** Finds the routes of a path. */

import type { Route } from './routes.ts';

export interface PathMatch {
  /** The routes of the path: one for each method that it has. */
  readonly routes: readonly Route[];
  /** The last segment of the path, with its digits decoded, if the routes have an id there. */
  readonly id: string | undefined;
}

export type MatchPath = (path: string) => PathMatch | undefined;

/** Returns a function that finds the routes of a path. A literal path takes precedence over one that ends in `{id}`. */
export function createPathMatcher(routes: readonly Route[]): MatchPath {
  const byPath = new Map<string, Route[]>();
  for (const route of routes) byPath.set(route.path, [...(byPath.get(route.path) ?? []), route]);

  return (path) => {
    // `{id}` is part of a template. A client that sends these characters has sent an invalid id.
    const literal = path.endsWith('/{id}') ? undefined : byPath.get(path);
    if (literal) return { routes: literal, id: undefined };
    const slash = path.lastIndexOf('/');
    const id = path.slice(slash + 1);
    // A path with a trailing slash is an unknown path, not a path with an empty id.
    const withId = id === '' ? undefined : byPath.get(`${path.slice(0, slash)}/{id}`);
    return withId && { routes: withId, id: decodeDigits(id) };
  };
}

/** Digits may be percent-encoded: `%31` is `1` (RFC 3986, section 2.3). No other character is part of an id. */
const decodeDigits = (text: string): string => text.replace(/%3(\d)/g, '$1');

/** The value of the `Allow` header for a path with these routes. Every path that supports GET supports HEAD. */
export function allowHeader(routes: readonly Route[]): string {
  return routes.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ');
}
