/**
 * The filters of a view are parameters of its address, such as `?state=locked`, so that back, forward, reload and links work.
 */

import { useLocation } from 'preact-iso';

type Changes = Readonly<Record<string, string | undefined>>;

export interface Address {
  /** The parameters of the address. A user may have typed them, so they may be anything. */
  readonly query: Readonly<Partial<Record<string, string>>>;
  /** The address of this view with these changes; `undefined` removes a parameter. */
  hrefWith(changes: Changes): string;
  /** Goes to that address. @param replace whether it replaces the current entry of the browser's history. */
  change(changes: Changes, replace?: boolean): void;
}

export function useAddress(): Address {
  const { path, query, route } = useLocation();
  const hrefWith = (changes: Changes) => {
    const values = Object.entries({ ...query, ...changes }).flatMap(([name, value]) =>
      value === undefined || value === '' ? [] : [[name, value]],
    );
    return values.length === 0 ? path : `${path}?${new URLSearchParams(values)}`;
  };
  return { query, hrefWith, change: (changes, replace) => route(hrefWith(changes), replace) };
}

/** The database id that a part of an address stands for; undefined if it cannot be one. */
export function databaseIdOf(text: string | undefined): number | undefined {
  const number = Number(text);
  return text !== undefined && /^[1-9]\d*$/.test(text) && number < 2 ** 31 ? number : undefined;
}
