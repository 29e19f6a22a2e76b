/** The view of one session: its facts, and its segments with measured values and targets. */

import { useRoute } from 'preact-iso';
import type { SessionQuery } from '../../generated/graphql.ts';
import { graphql } from '../api/graphql.ts';
import { useLive } from '../api/useLive.ts';
import { databaseIdOf } from '../parts/address.ts';
import { Passed } from '../parts/badge.tsx';
import { Facts } from '../parts/facts.tsx';
import { Empty, messageOf } from '../parts/loaded.tsx';
import { Missing } from '../parts/missing.tsx';
import { gradeText, passedText, pointsText } from '../parts/sums.ts';
import { Time } from '../parts/time.tsx';
import { View } from '../parts/view.tsx';
import { lastHref } from './lastAddress.ts';
import { programName, trainerName } from './names.ts';
import { timeName } from './periodName.ts';
import { Segments } from './segments.tsx';
import './history.css';
import { base } from '../paths.ts';

const session = graphql(`
  query Session($databaseId: Int!) {
    dttSession(databaseId: $databaseId) {
      id
      databaseId
      name
      createdAt
      passed
      templateId
      template {
        id
        databaseId
        name
      }
      trainerId
      trainer {
        id
        serialNumber
      }
      segments {
        id
        rawType
        passed
        gradePercent
        points
        durationMeasuredSeconds
        durationTargetSeconds
        repsMeasured
        repsTarget
        speedMeasured
        speedTarget
        distanceTravelledMetres
        strokeLength
        targetDepth
        targetWindow
        timeInTargetDepthMilliseconds
      }
    }
  }
`);

export function Session() {
  const { id } = useRoute().params;
  const databaseId = databaseIdOf(id);
  return databaseId === undefined ? (
    <Missing what="session" href={lastHref()} />
  ) : (
    <SessionById databaseId={databaseId} />
  );
}

function SessionById({ databaseId }: { databaseId: number }) {
  const variables = { databaseId };
  const result = useLive(session, variables);
  // While this session is pending, the data is of the previous one.
  const found = result.data?.dttSession?.databaseId === databaseId ? result.data.dttSession : undefined;
  if (!found && !result.isPending && !result.error) return <Missing what="session" href={lastHref()} />;
  return (
    <View
      back={{ href: lastHref(), name: 'All sessions' }}
      title={found ? found.name || `Session of ${timeName(found.createdAt)}` : 'Session'}
      sources={[{ document: session, variables }]}
    >
      {result.error && (
        <p class="note bad" role="alert">
          {messageOf(result.error)}
        </p>
      )}
      {found ? (
        <SessionFacts session={found} />
      ) : (
        result.isPending && <p class="hint history-wait">Loading…</p>
      )}
    </View>
  );
}

type FoundSession = NonNullable<SessionQuery['dttSession']>;

function SessionFacts({ session }: { session: FoundSession }) {
  const { createdAt, passed, template, templateId, trainer, trainerId, segments } = session;
  return (
    <>
      <div class="card history-card">
        <Facts
          of={[
            ['When', <Time key="when" at={createdAt} />],
            ['Result', <Passed key="result" passed={passed} />],
            ['Segments passed', passedText(segments)],
            ['Average grade', gradeText(segments)],
            ['Points', pointsText(segments)],
            [
              'Program',
              template ? (
                <a href={`${base}/programs/${template.databaseId}`}>{template.name}</a>
              ) : (
                programName(template, templateId)
              ),
            ],
            ['Trainer', trainerName(trainer, trainerId)],
          ]}
        />
      </div>
      <section class="card history-card" aria-labelledby="segments">
        <h2 id="segments">Segments</h2>
        {segments.length === 0 ? <Empty>No segments are recorded.</Empty> : <Segments segments={segments} />}
      </section>
    </>
  );
}
