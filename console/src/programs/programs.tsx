/** The view of all programs: to search, to filter and to activate them. */

import type { RefObject } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { NowActiveQuery, ProgramsQuery } from '../../generated/graphql.ts';
import { graphql } from '../api/graphql.ts';
import { useLive } from '../api/useLive.ts';
import { useAddress } from '../parts/address.ts';
import { counted } from '../parts/counted.ts';
import { Empty, Loaded } from '../parts/loaded.tsx';
import { firstPage, Paging, pageOf } from '../parts/paging.tsx';
import { View } from '../parts/view.tsx';
import {
  type Activatable,
  type Activated,
  ActivatedNote,
  ActivationDialog,
  activate,
  nowActive,
} from './activation.tsx';
import { ProgramCard } from './card.tsx';
import { argumentsFor, type Filters, filtersOf } from './filters.ts';
import { Toolbar } from './toolbar.tsx';
import './fields.ts';
import './programs.css';
import { base } from '../paths.ts';

const programs = graphql(`
  query Programs(
    $first: Int
    $after: String
    $last: Int
    $before: String
    $where: DttTemplateFilter
    $orderBy: [DttTemplateOrder!]
  ) {
    dttTemplates(
      first: $first
      after: $after
      last: $last
      before: $before
      where: $where
      orderBy: $orderBy
    ) {
      totalCount
      pageInfo {
        hasNextPage
        hasPreviousPage
        startCursor
        endCursor
      }
      nodes {
        ...ProgramFields
      }
    }
  }
`);

export function Programs() {
  const { query, hrefWith } = useAddress();
  const filters = filtersOf(query);
  const variables = { ...pageOf(query), ...argumentsFor(filters) };
  const result = useLive(programs, variables);
  const heading = useRef<HTMLHeadingElement>(null);
  const [chosen, setChosen] = useState<Activatable>();
  const [activated, setActivated] = useState<Activated>();
  // The note about an activation goes when the user searches, filters or turns a page.
  const address = hrefWith({});
  useEffect(() => setActivated(undefined), [address]);
  const count = result.data?.dttTemplates?.totalCount;

  return (
    <View
      title="Programs"
      sources={[
        { document: programs, variables },
        { document: nowActive, variables: {} },
        { document: activate, variables: { template: { databaseId: 1 } } },
      ]}
    >
      <Toolbar filters={filters} />
      <NowActive />
      <ActivatedNote activated={activated} />
      <h2 ref={heading} tabIndex={-1} class="count" aria-live="polite">
        {result.isPending || count === undefined ? 'Programs' : counted(count, 'program')}
      </h2>
      <div aria-busy={result.isPending}>
        <Loaded result={result}>
          {({ dttTemplates }) =>
            dttTemplates && (
              <ProgramList
                list={dttTemplates}
                filters={filters}
                heading={heading}
                isPending={result.isPending}
                onActivate={setChosen}
              />
            )
          }
        </Loaded>
      </div>
      {result.error && (query.after ?? query.before) !== undefined && (
        <p>
          <a href={hrefWith(firstPage)}>First page</a>
        </p>
      )}
      {chosen && (
        <ActivationDialog
          program={chosen}
          onClose={(result) => {
            setActivated(result);
            setChosen(undefined);
          }}
        />
      )}
    </View>
  );
}

function NowActive() {
  const { data } = useLive(nowActive, {});
  return <p class="now-active">{data?.viewer && <NowActiveText {...data.viewer} />}</p>;
}

function NowActiveText({ activeDttTemplate: active, scheduleType }: NonNullable<NowActiveQuery['viewer']>) {
  return (
    <>
      {active ? (
        <>
          Active now: <a href={`${base}/programs/${active.databaseId}`}>{active.name}</a>
        </>
      ) : (
        'No program is active now.'
      )}
      {scheduleType && ` · Schedule: ${scheduleType.toLowerCase()}`}
    </>
  );
}

interface ProgramListProps {
  list: NonNullable<ProgramsQuery['dttTemplates']>;
  filters: Filters;
  heading: RefObject<HTMLElement | null>;
  isPending: boolean;
  onActivate(program: Activatable): void;
}

function ProgramList({ list, filters, heading, isPending, onActivate }: ProgramListProps) {
  if (list.nodes.length === 0) return <NoPrograms filters={filters} />;
  return (
    <>
      <ul class="cards programs">
        {list.nodes.map((program) => (
          <ProgramCard key={program.id} program={program} onActivate={() => onActivate(program)} />
        ))}
      </ul>
      <Paging of={list} what="program" heading={heading} isPending={isPending} />
    </>
  );
}

function NoPrograms({ filters: { show, search } }: { filters: Filters }) {
  if (show === 'all' && search === '')
    return (
      <Empty>
        You have no programs yet. What you create or import with the service that your devices use appears
        here by itself.
      </Empty>
    );
  return (
    <Empty>
      {search === '' ? 'No program is like this.' : `No program like this has “${search}” in its name.`}{' '}
      <a href={`${base}/programs`}>Show all programs</a>
    </Empty>
  );
}
