/** The view of one lock session: its facts, its course as a bar with a time scale, and its events as a table. */

import { useRoute } from 'preact-iso';
import { graphql } from '../api/graphql.ts';
import { useLive } from '../api/useLive.ts';
import { databaseIdOf } from '../parts/address.ts';
import { capitalised } from '../parts/capitalised.ts';
import { Countdown } from '../parts/countdown.tsx';
import { Facts } from '../parts/facts.tsx';
import { Empty, Loaded } from '../parts/loaded.tsx';
import { Missing } from '../parts/missing.tsx';
import { duration, Time, useNow } from '../parts/time.tsx';
import { View } from '../parts/view.tsx';
import { type Course, courseOf } from './course.ts';
import { describeCourse, Legend, LockBar } from './lockBar.tsx';
import { nameOf, neverLocked, type Session, State } from './sessionCard.tsx';
import { LockTemplateFacts } from './templates.tsx';
import './locks.css';
import { base } from '../paths.ts';

const lockSession = graphql(`
  query LockSession($databaseId: Int!) {
    lockSession(databaseId: $databaseId) {
      id
      databaseId
      name
      lockState
      isActive
      startedAt
      endsAt
      createdAt
      durationSeconds
      publicId
      template {
        id
        databaseId
        name
        durationSeconds
        isRandomDuration
        isBreakEnabled
        breakRegularitySeconds
        isEmergencyUnlockEnabled
        createdAt
      }
      segments {
        id
        createdAt
        type
        isLocked
      }
    }
  }
`);

/** The view of one lock session, which the address names. */
export function Lock() {
  const { id } = useRoute().params;
  const databaseId = databaseIdOf(id);
  if (databaseId === undefined) return <Missing what="lock session" href={`${base}/locks`} />;
  return <LockById key={databaseId} databaseId={databaseId} />;
}

function LockById({ databaseId }: { databaseId: number }) {
  const result = useLive(lockSession, { databaseId });
  const session = result.data?.lockSession;
  if (session === null && !result.isPending && !result.error)
    return <Missing what="lock session" href={`${base}/locks`} />;
  return (
    <View
      back={{ href: `${base}/locks`, name: 'All lock sessions' }}
      title={session ? nameOf(session) : 'Lock session'}
      sources={[{ document: lockSession, variables: { databaseId } }]}
    >
      <Loaded result={result}>
        {({ lockSession }) =>
          lockSession && (
            <div class="lock-details">
              <SessionDetails session={lockSession} />
              {lockSession.template && (
                <section class="card">
                  <h2>Template: {lockSession.template.name}</h2>
                  <LockTemplateFacts template={lockSession.template} />
                  <a href={`${base}/locks?template=${lockSession.template.databaseId}`}>Sessions from it</a>
                </section>
              )}
            </div>
          )
        }
      </Loaded>
    </View>
  );
}

interface SessionDetailsProps {
  session: Session & { readonly publicId: string; readonly createdAt?: string | null | undefined };
}

function SessionDetails({ session }: SessionDetailsProps) {
  const course = courseOf(session, useNow(30_000));
  return (
    <>
      <section class="card" aria-label="State">
        <p class="head">
          <State session={session} />
        </p>
        {session.isActive && <Countdown startedAt={session.startedAt} endsAt={session.endsAt} />}
        <Facts
          of={[
            ['Started', <Time key="started" at={session.startedAt} />],
            // Of an active session, the countdown says it.
            [
              'Ended',
              session.isActive || session.endsAt == null ? null : <Time key="ends" at={session.endsAt} />,
            ],
            ['Planned time', duration(session.durationSeconds)],
            ['Created', session.createdAt == null ? null : <Time key="created" at={session.createdAt} />],
            ['Public identifier', session.publicId],
            ['Id', session.databaseId],
          ]}
        />
      </section>
      <section class="card">
        <h2>Over time</h2>
        {course ? (
          <>
            <p>{describeCourse(course)}</p>
            <Legend />
            <LockBar course={course} />
          </>
        ) : (
          <p>{neverLocked}</p>
        )}
        <Events session={session} course={course} />
      </section>
    </>
  );
}

/** All events, including those that the bar cannot show. */
function Events({ session: { segments }, course }: { session: Session; course: Course | undefined }) {
  if (segments.length === 0) return <Empty>No events are recorded yet.</Empty>;
  return (
    <div class="scroll">
      <table>
        <caption class="hidden">Every event, oldest first</caption>
        <thead>
          <tr>
            <th scope="col">When</th>
            <th scope="col">Event</th>
            <th scope="col" class="number">
              Lasted
            </th>
          </tr>
        </thead>
        <tbody>
          {segments.map(({ id, createdAt, type, isLocked }) => (
            <tr key={id}>
              <td>
                <Time at={createdAt} />
              </td>
              <td class="free-text">
                {capitalised(type)} <span class="hint">{isLocked ? 'Locked' : 'Open'}</span>
              </td>
              <td class="number">{durationText(course, id)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function durationText(course: Course | undefined, key: string): string {
  const stretch = course?.stretches.find((each) => each.key === key);
  return stretch ? duration((stretch.to - stretch.from) / 1_000) : '–';
}
