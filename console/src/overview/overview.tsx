/** The first view: what there is, and what goes on. */

import { useLive } from '../api/useLive.ts';
import { Figures } from '../parts/facts.tsx';
import { Empty, Loaded } from '../parts/loaded.tsx';
import { View } from '../parts/view.tsx';
import { ActiveProgram } from './activeProgram.tsx';
import { Devices } from './devices.tsx';
import { LatestSession } from './latestSession.tsx';
import { overview } from './query.ts';
import { RunningLock } from './runningLock.tsx';
import './overview.css';

const sources = [{ document: overview, variables: {} }];

export function Overview() {
  const result = useLive(overview, {});
  return (
    <View title="Overview" sources={sources}>
      <Loaded result={result}>
        {({ viewer }) =>
          viewer ? (
            <>
              <p>
                Signed in as <b>{viewer.username}</b>
                {viewer.profileTitle && `, ${viewer.profileTitle}`}
              </p>
              <Figures
                label="Your figures"
                of={[
                  ['Rank', viewer.rank],
                  ['League', viewer.league],
                  ['Points', viewer.totalPoints],
                  ['Match points', viewer.matchPoints],
                  ['Training sessions', viewer.dttTotalSessions],
                  ['Repetitions', viewer.dttTotalReps],
                ]}
              />
              <div class="overview">
                <ActiveProgram program={viewer.activeDttTemplate} />
                <LatestSession session={viewer.latestDttSession} />
                <RunningLock lock={viewer.activeLockSession} />
                <Devices viewer={viewer} />
              </div>
            </>
          ) : (
            <Empty>The gateway does not say whose token this is.</Empty>
          )
        }
      </Loaded>
    </View>
  );
}
