/**
 * What a view is narrowed to stands in its address, such as `?state=locked`, so that back, forward, reload and links work.
 */

import { useLocation } from 'preact-iso';

type Changes = Readonly<Record<string, string | undefined>>;

export interface Address {
  /** What the address says. Somebody may have typed it: it may be anything. */
  readonly query: Readonly<Partial<Record<string, string>>>;
  /** The address of this view with these values; `undefined` takes one out. */
  hrefWith(changes: Changes): string;
  /** Goes there. @param replace whether going back leads to what was before this address. */
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

/** The integer that names a record, as it stands in an address; undefined where it can name none. */
export function databaseIdOf(text: string | undefined): number | undefined {
  const number = Number(text);
  return text !== undefined && /^[1-9]\d*$/.test(text) && number < 2 ** 31 ? number : undefined;
}
