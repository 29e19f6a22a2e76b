/** One program: all that there is to know of it, and how it went the last times. */

import { useState } from 'preact/hooks';
import type { ProgramQuery } from '../../generated/graphql.ts';
import { graphql } from '../api/graphql.ts';
import { useLive } from '../api/useLive.ts';
import { databaseIdOf } from '../parts/address.ts';
import { Passed } from '../parts/badge.tsx';
import { Empty, Loaded } from '../parts/loaded.tsx';
import { Time } from '../parts/time.tsx';
import { Timeline } from '../parts/timeline.tsx';
import { View } from '../parts/view.tsx';
import { ActivateButton, Activation, activate, type Done, nowActive, Said } from './activation.tsx';
import { Badges, Length } from './card.tsx';
import { partsOf } from './fields.ts';
import './programs.css';

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

type Found = NonNullable<ProgramQuery['dttTemplate']>;

/** @param params the program, as the address names it. */
export function Program({ params: { id } }: { params: { id: string } }) {
  const databaseId = databaseIdOf(id);
  if (databaseId === undefined) return <Missing />;
  return <ProgramById key={databaseId} databaseId={databaseId} />;
}

function ProgramById({ databaseId }: { databaseId: number }) {
  const variables = { databaseId };
  const result = useLive(program, variables);
  const found = result.data?.dttTemplate;
  if (found === null && !result.error) return <Missing />;
  return (
    <View
      title={found?.name ?? 'Program'}
      sources={[
        { document: program, variables },
        { document: nowActive, variables: {} },
        { document: activate, variables: { template: { databaseId } } },
      ]}
    >
      <Loaded result={result}>{({ dttTemplate }) => dttTemplate && <Whole program={dttTemplate} />}</Loaded>
    </View>
  );
}

const Missing = () => (
  <View title="No such program" sources={[]}>
    <p>
      There is none with this number, or none that you can see. It may have been deleted.{' '}
      <a href="/console/programs">All programs</a>
    </p>
  </View>
);

function Whole({ program }: { program: Found }) {
  const { id, name, tagline, description, message, segments, sessions } = program;
  const [isAsking, setIsAsking] = useState(false);
  const [done, setDone] = useState<Done>();
  return (
    <>
      {tagline != null && <p class="tagline">{tagline}</p>}
      <div class="card program">
        <div class="foot">
          <Badges of={program} />
          <ActivateButton program={program} onClick={() => setIsAsking(true)} />
        </div>
        <Said done={done} />
        <Length segments={segments} />
        <Timeline label={`Segments of ${name}`} parts={partsOf(segments)} />
      </div>
      {description != null && <p class="prose">{description}</p>}
      {message != null && (
        <figure class="message">
          <figcaption class="hint">It says to the one who trains:</figcaption>
          <blockquote>{message}</blockquote>
        </figure>
      )}
      <Facts of={program} />
      <h2>Latest sessions</h2>
      {sessions == null || sessions.nodes.length === 0 ? (
        <Empty>Nobody has trained with it yet. A session appears here when it is over.</Empty>
      ) : (
        <Sessions list={sessions} program={program} />
      )}
      {isAsking && (
        <Activation
          key={id}
          program={program}
          onEnd={(done) => {
            setDone(done);
            setIsAsking(false);
          }}
        />
      )}
    </>
  );
}

function Facts({ of: program }: { of: Found }) {
  const { handsFreeMode, targetDepth, targetWindow, toyId, createdAt, updatedAt } = program;
  return (
    <dl class="facts">
      <div>
        <dt>Hands-free</dt>
        <dd>{handsFreeMode ? 'Yes' : 'No'}</dd>
      </div>
      <div>
        <dt>Target depth</dt>
        <dd>
          {targetDepth.toLocaleString()} ± {targetWindow.toLocaleString()}
        </dd>
      </div>
      {toyId != null && (
        <div>
          <dt>Made for the toy</dt>
          <dd>{toyId}</dd>
        </div>
      )}
      <div>
        <dt>Created</dt>
        <dd>
          <Time at={createdAt} />
        </dd>
      </div>
      <div>
        <dt>Edited</dt>
        <dd>
          <Time at={updatedAt} />
        </dd>
      </div>
    </dl>
  );
}

interface SessionsProps {
  list: NonNullable<Found['sessions']>;
  program: Found;
}

function Sessions({ list: { nodes, totalCount }, program: { databaseId } }: SessionsProps) {
  return (
    <>
      <ul class="sessions">
        {nodes.map(({ id, databaseId, createdAt, passed, trainer, segments }) => (
          <li key={id}>
            <a href={`/console/history/${databaseId}`}>
              <Time at={createdAt} />
            </a>
            <Passed passed={passed} />
            <span>
              {segments.filter((segment) => segment.passed).length.toLocaleString()} of{' '}
              {segments.length.toLocaleString()} segments passed
            </span>
            <span>{pointsOf(segments)}</span>
            <span>{trainer?.serialNumber != null && `Trainer ${trainer.serialNumber}`}</span>
          </li>
        ))}
      </ul>
      {totalCount > nodes.length && (
        <p>
          <a href={`/console/history?program=${databaseId}`}>
            All {totalCount.toLocaleString()} sessions with it, in the history
          </a>
        </p>
      )}
    </>
  );
}

function pointsOf(segments: readonly { readonly points?: number | null | undefined }[]): string {
  const known = segments.flatMap(({ points }) => points ?? []);
  return known.length === 0
    ? ''
    : `${known.reduce((sum, points) => sum + points, 0).toLocaleString()} points`;
}
