/** The frame of every view: its heading, and at the end the queries that it is made of. */

import type { TypedDocumentNode } from '@graphql-typed-document-node/core';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { textOf } from '../api/graphql.ts';
import { subscriptionOf } from '../api/live.ts';
import { hasGraphiql, hasUserInteracted } from '../page.ts';
import { home } from '../paths.ts';

/** A query with the variables that the view sends. */
export interface Source {
  readonly document: TypedDocumentNode<unknown, never>;
  readonly variables: Readonly<Record<string, unknown>>;
}

interface ViewProps {
  title: string;
  /** The list that this view shows one record of: it is linked above the title. */
  back?: { readonly href: string; readonly name: string };
  /** The queries of the view, which are shown to developers. */
  sources: readonly Source[];
  children: ComponentChildren;
}

export function View({ title, back, sources, children }: ViewProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} – Dovetail`;
  }, [title]);
  // After a link or signing in, the focus goes to the heading of the new view. After the load of a page it stays where it is.
  useEffect(() => {
    if (hasUserInteracted()) heading.current?.focus();
  }, []);
  return (
    <>
      {back && (
        <a class="back" href={back.href}>
          {back.name}
        </a>
      )}
      <h1 ref={heading} tabIndex={-1}>
        {title}
      </h1>
      {children}
      {sources.length > 0 && <Sources sources={sources} />}
    </>
  );
}

function Sources({ sources }: Pick<ViewProps, 'sources'>) {
  return (
    <details class="sources">
      <summary>For developers: {sources.length > 1 ? 'the queries' : 'the query'} behind this view</summary>
      {sources.map(({ document, variables }) => {
        const text = textOf(document);
        const values = JSON.stringify(variables, null, 2);
        return (
          <section key={text}>
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reachable by keyboard. */}
            <pre tabIndex={0}>
              <code>{text}</code>
            </pre>
            {values !== '{}' && (
              <p>
                Variables: <code>{JSON.stringify(variables)}</code>
              </p>
            )}
            {hasGraphiql && (
              <p>
                <a href={hrefOfGraphiql(text, values)}>Open in GraphiQL</a>
                {isQuery(document) && (
                  <>
                    {', or '}
                    <a href={hrefOfGraphiql(subscriptionOf({ query: document }), values)}>
                      as a subscription
                    </a>
                  </>
                )}
              </p>
            )}
          </section>
        );
      })}
      <p class="hint">
        Each query is live: sent as a <code>subscription</code>, it delivers its result at once and again
        after every change. If you open GraphiQL from here, in this tab, it uses your token.
      </p>
    </details>
  );
}

const hrefOfGraphiql = (query: string, variables: string): string =>
  `${home}graphql?${new URLSearchParams({ query, ...(variables !== '{}' && { variables }) })}`;

const isQuery = ({ definitions }: Source['document']): boolean =>
  definitions.some((each) => each.kind === 'OperationDefinition' && each.operation === 'query');
