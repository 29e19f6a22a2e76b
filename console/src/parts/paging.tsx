/** The pages of a list by cursors, which stand in the address. */

import type { RefObject } from 'preact';
import { useEffect } from 'preact/hooks';
import { type Address, useAddress } from './address.ts';
import { counted } from './counted.ts';

const pageSize = 20;

/** What leads to the first page: to be changed together with any filter, since cursors belong to a list. */
export const firstPage = { after: undefined, before: undefined } as const;

/** The arguments of a list for the page that the address names. */
export function pageOf({ after, before }: Address['query']) {
  return before === undefined ? { first: pageSize, after } : { last: pageSize, before };
}

interface PagingProps {
  of: {
    readonly totalCount: number;
    readonly pageInfo: {
      readonly hasNextPage: boolean;
      readonly hasPreviousPage: boolean;
      readonly startCursor?: string | null | undefined;
      readonly endCursor?: string | null | undefined;
    };
  };
  /** What one of the list is, such as `session`. */
  what: string;
  /** The heading of the list (with a `tabIndex` of -1), at which one goes on after turning a page. */
  heading: RefObject<HTMLElement | null>;
  /** Whether it is not yet the page that the address names. */
  isPending: boolean;
}

export function Paging({ of: { totalCount, pageInfo }, what, heading, isPending }: PagingProps) {
  const { query, hrefWith, change } = useAddress();
  const { after, before } = query;
  const isFirst = after === undefined && before === undefined;

  // Who has come back to the newest stays with them, whatever is added.
  const isBack = before !== undefined && !pageInfo.hasPreviousPage && !isPending;
  useEffect(() => {
    if (isBack) change(firstPage, true);
  }, [isBack]);

  const goOn = () => heading.current?.focus();
  if (isFirst && !pageInfo.hasNextPage) return null;
  return (
    <nav class="paging" aria-label={`Pages of ${what}s`}>
      {!isFirst && (
        <a href={hrefWith(firstPage)} onClick={goOn}>
          First page
        </a>
      )}
      {pageInfo.hasPreviousPage && pageInfo.startCursor != null && (
        <a rel="prev" href={hrefWith({ after: undefined, before: pageInfo.startCursor })} onClick={goOn}>
          ← Previous
        </a>
      )}
      {pageInfo.hasNextPage && pageInfo.endCursor != null && (
        <a rel="next" href={hrefWith({ before: undefined, after: pageInfo.endCursor })} onClick={goOn}>
          Next →
        </a>
      )}
      <span class="hint">{counted(totalCount, what)} in all</span>
    </nav>
  );
}
