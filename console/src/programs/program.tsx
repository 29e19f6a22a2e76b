/** The view of one program: everything about it, and its latest sessions. */

import { useState } from 'preact/hooks';
import type { ProgramQuery } from '../../generated/graphql.ts';
import { graphql } from '../api/graphql.ts';
import { useLive } from '../api/useLive.ts';
import { databaseIdOf } from '../parts/address.ts';
import { Facts } from '../parts/facts.tsx';
import { Empty, Loaded } from '../parts/loaded.tsx';
import { Missing } from '../parts/missing.tsx';
import { numberText } from '../parts/number.ts';
import { timelineParts } from '../parts/programSegments.ts';
import { Time } from '../parts/time.tsx';
import { Timeline } from '../parts/timeline.tsx';
import { View } from '../parts/view.tsx';
import {
  ActivateButton,
  type Activated,
  ActivatedNote,
  ActivationDialog,
  activate,
  nowActive,
} from './activation.tsx';
import { Badges, Length } from './card.tsx';
import './fields.ts';
import { LatestSessions } from './latestSessions.tsx';
import './programs.css';
import { base } from '../paths.ts';

const program = graphql(`
  query Program($databaseId: Int!) {
    dttTemplate(databaseId: $databaseId) {
      ...ProgramFields
      description
      message
      handsFreeMode
      targetDepth
      targetWindow
      toyId
      createdAt
      updatedAt
      sessions(first: 10) {
        totalCount
        nodes {
          id
          databaseId
          createdAt
          passed
          trainer {
            id
            serialNumber
          }
          segments {
            id
            passed
            points
          }
        }
      }
    }
  }
`);

type FoundProgram = NonNullable<ProgramQuery['dttTemplate']>;

/** @param params the parameters of the route. */
export function Program({ params: { id } }: { params: { id: string } }) {
  const databaseId = databaseIdOf(id);
  if (databaseId === undefined) return <Missing what="program" href={`${base}/programs`} />;
  return <ProgramById key={databaseId} databaseId={databaseId} />;
}

function ProgramById({ databaseId }: { databaseId: number }) {
  const variables = { databaseId };
  const result = useLive(program, variables);
  const found = result.data?.dttTemplate;
  if (found === null && !result.error) return <Missing what="program" href={`${base}/programs`} />;
  return (
    <View
      back={{ href: `${base}/programs`, name: 'All programs' }}
      title={found?.name ?? 'Program'}
      sources={[
        { document: program, variables },
        { document: nowActive, variables: {} },
        { document: activate, variables: { template: { databaseId } } },
      ]}
    >
      <Loaded result={result}>
        {({ dttTemplate }) => dttTemplate && <ProgramDetails program={dttTemplate} />}
      </Loaded>
    </View>
  );
}

function ProgramDetails({ program }: { program: FoundProgram }) {
  const { id, name, databaseId, tagline, description, message, segments, sessions } = program;
  const [isAsking, setIsAsking] = useState(false);
  const [activated, setActivated] = useState<Activated>();
  return (
    <>
      <div class="card program">
        <div class="foot">
          <Badges of={program} />
          <ActivateButton program={program} onClick={() => setIsAsking(true)} />
        </div>
        <ActivatedNote activated={activated} />
        {tagline && <p class="tagline">{tagline}</p>}
        {description && <p class="prose">{description}</p>}
        <Length segments={segments} />
        {segments.length > 0 && <Timeline label={`Segments of ${name}`} parts={timelineParts(segments)} />}
        {message && (
          <figure class="message">
            <figcaption class="hint">Message</figcaption>
            <blockquote>{message}</blockquote>
          </figure>
        )}
        <Facts of={factsOf(program)} />
      </div>
      <section class="card program" aria-labelledby="latest">
        <h2 id="latest">Latest sessions</h2>
        {sessions == null || sessions.nodes.length === 0 ? (
          <Empty>No sessions yet. Each appears here when it is over.</Empty>
        ) : (
          <LatestSessions list={sessions} databaseId={databaseId} />
        )}
      </section>
      {isAsking && (
        <ActivationDialog
          key={id}
          program={program}
          onClose={(result) => {
            setActivated(result);
            setIsAsking(false);
          }}
        />
      )}
    </>
  );
}

const factsOf = ({ handsFreeMode, targetDepth, targetWindow, toyId, createdAt, updatedAt }: FoundProgram) =>
  [
    ['Hands-free', handsFreeMode ? 'Yes' : 'No'],
    ['Target depth', `${numberText(targetDepth)} ± ${numberText(targetWindow)}`],
    ['Made for the toy', toyId],
    ['Created', <Time key="created" at={createdAt} />],
    ['Edited', <Time key="edited" at={updatedAt} />],
  ] as const;
