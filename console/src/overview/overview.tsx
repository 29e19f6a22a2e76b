/** The first view: what there is, and what goes on. */

import { graphql } from '../api/graphql.ts';
import { useLive } from '../api/useLive.ts';
import { Loaded } from '../parts/loaded.tsx';
import { TimeAgo } from '../parts/time.tsx';
import { Timeline } from '../parts/timeline.tsx';
import { View } from '../parts/view.tsx';

const overview = graphql(`
  query Overview {
    viewer {
      id
      username
      activeDttTemplate {
        id
        databaseId
        name
        segments {
          id
          type
          durationSeconds
          repeat
        }
      }
      dttDevices(first: 100) {
        totalCount
        nodes {
          id
          serialNumber
          lastVisitedAt
        }
      }
    }
  }
`);

const sources = [{ document: overview, variables: {} }];

export function Overview() {
  const result = useLive(overview, {});
  return (
    <View title="Overview" sources={sources}>
      <Loaded result={result}>
        {({ viewer }) =>
          viewer && (
            <>
              <h2>{viewer.activeDttTemplate?.name}</h2>
              <Timeline
                label="Segments"
                parts={(viewer.activeDttTemplate?.segments ?? []).map(
                  ({ id, type, durationSeconds, repeat }) => ({
                    key: id,
                    name: type,
                    seconds: durationSeconds,
                    times: repeat,
                    kind: type,
                  }),
                )}
              />
              <ul>
                {viewer.dttDevices?.nodes.map(({ id, serialNumber, lastVisitedAt }) => (
                  <li key={id}>
                    {serialNumber} <TimeAgo at={lastVisitedAt} />
                  </li>
                ))}
              </ul>
            </>
          )
        }
      </Loaded>
    </View>
  );
}
