/** The pages of a list. Their cursors are parameters of the address. */

import type { RefObject } from 'preact';
import { useEffect } from 'preact/hooks';
import { type Address, useAddress } from './address.ts';
import { counted } from './counted.ts';

const pageSize = 20;

/** The changes of the address that lead to the first page. Any change of a filter includes them: a cursor is of one list. */
export const firstPage = { after: undefined, before: undefined } as const;

/** The arguments of the list's field for the page that the address names. */
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
  /** What an entry of the list is, such as `session`. */
  what: string;
  /** The heading of the list (with a `tabIndex` of -1), which gets the focus when the user turns a page. */
  heading: RefObject<HTMLElement | null>;
  /** Whether the page that the address names has not arrived yet. */
  isPending: boolean;
}

export function Paging({ of: { totalCount, pageInfo }, what, heading, isPending }: PagingProps) {
  const { query, hrefWith, change } = useAddress();
  const { after, before } = query;
  const isFirst = after === undefined && before === undefined;

  // A user who has paged back to the newest entries goes on seeing the newest, without a cursor in the address.
  const isBackAtFirst = before !== undefined && !pageInfo.hasPreviousPage && !isPending;
  useEffect(() => {
    if (isBackAtFirst) change(firstPage, true);
  }, [isBackAtFirst]);

  const focusHeading = () => heading.current?.focus();
  if (isFirst && !pageInfo.hasNextPage) return null;
  return (
    <nav class="paging" aria-label={`Pages of ${what}s`}>
      {!isFirst && (
        <a href={hrefWith(firstPage)} onClick={focusHeading}>
          First page
        </a>
      )}
      {pageInfo.hasPreviousPage && pageInfo.startCursor != null && (
        <a
          rel="prev"
          href={hrefWith({ after: undefined, before: pageInfo.startCursor })}
          onClick={focusHeading}
        >
          ← Previous
        </a>
      )}
      {pageInfo.hasNextPage && pageInfo.endCursor != null && (
        <a
          rel="next"
          href={hrefWith({ before: undefined, after: pageInfo.endCursor })}
          onClick={focusHeading}
        >
          Next →
        </a>
      )}
      <span class="hint">{counted(totalCount, what)} in all</span>
    </nav>
  );
}
