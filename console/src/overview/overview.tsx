/** The first view: figures, devices, the active program, the latest session and the running lock. */

import { useRef } from 'preact/hooks';
import { useLive } from '../api/useLive.ts';
import { Figures } from '../parts/facts.tsx';
import { Empty, Loaded } from '../parts/loaded.tsx';
import { View } from '../parts/view.tsx';
import { ActiveProgram } from './activeProgram.tsx';
import { LockDevices, Ossms, Trainers } from './devices.tsx';
import { LatestSession } from './latestSession.tsx';
import { Part } from './part.tsx';
import { overview, type Viewer } from './query.ts';
import { RunningLock } from './runningLock.tsx';
import './overview.css';

const sources = [{ document: overview, variables: {} }];

export function Overview() {
  const result = useLive(overview, {});
  const failed = new Set(result.error?.graphQLErrors.map(({ path }) => path?.[1]));
  const viewer = useLastKnown(result.data?.viewer, failed);
  // A field that is null has no value, unless an error says that the gateway failed to read it.
  const isKnown = (field: keyof Viewer) => viewer?.[field] != null || !failed.has(field);
  return (
    <View title="Overview" sources={sources}>
      <Loaded result={result}>
        {() =>
          viewer ? (
            <>
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
                <Part name="Active program" kind="wide" isKnown={isKnown('activeDttTemplate')}>
                  <ActiveProgram program={viewer.activeDttTemplate} />
                </Part>
                <Part name="Latest session" isKnown={isKnown('latestDttSession')}>
                  <LatestSession session={viewer.latestDttSession} />
                </Part>
                <Part name="Running lock" isKnown={isKnown('activeLockSession')}>
                  <RunningLock lock={viewer.activeLockSession} />
                </Part>
                <section class="card wide devices" aria-label="Devices">
                  <Part name="Trainers" kind="column" isKnown={isKnown('dttDevices')}>
                    <Trainers devices={viewer.dttDevices} />
                  </Part>
                  <Part name="Lock devices" kind="column" isKnown={isKnown('lkbxDevices')}>
                    <LockDevices devices={viewer.lkbxDevices} />
                  </Part>
                  <Part name="OSSMs" kind="column" isKnown={isKnown('ossmDevices')}>
                    <Ossms devices={viewer.ossmDevices} />
                  </Part>
                </section>
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

/** The viewer, with what was read before of the fields that the gateway fails to read now. */
function useLastKnown(viewer: Viewer | null | undefined, failed: ReadonlySet<unknown>) {
  const last = useRef<Viewer>(undefined);
  if (!viewer) return viewer;
  const before = Object.entries(last.current ?? {}).filter(([field]) => failed.has(field));
  last.current = { ...viewer, ...Object.fromEntries(before) };
  return last.current;
}
