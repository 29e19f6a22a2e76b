/** What a frontend with gql.tada asks: its types have to follow from the schema. Run by .ci/run, beside the schema. */

import { initGraphQLTada, type ResultOf, type VariablesOf } from 'gql.tada';
import type { introspection } from './graphql-env.d.ts';

const graphql = initGraphQLTada<{ introspection: introspection; scalars: { DateTime: string } }>();

const device = graphql(`
  fragment AnyDevice on Device @_unmask {
    id
    macAddress
    lastVisitedAt
    ... on DttDevice {
      serialNumber
    }
  }
`);

const devices = graphql(
  `
    query Devices($first: Int = 10, $after: String) {
      viewer {
        scheduleType
        devices(first: $first, after: $after) {
          totalCount
          nodes {
            ...AnyDevice
          }
          pageInfo {
            hasNextPage
            endCursor
          }
        }
      }
      latestDttSession {
        segments {
          type
          rawType
          durationMeasuredSeconds
        }
      }
    }
  `,
  [device],
);

const activation = graphql(`
  mutation Activate($template: DttTemplateReference!) {
    activateTemplate(template: $template) {
      previousTemplate {
        id
        isActive
      }
    }
  }
`);

/** A field that can fail is nullable, and what was read with its record is not. */
export function namesOf({ viewer, latestDttSession }: ResultOf<typeof devices>): readonly string[] {
  const visited: (string | null)[] = viewer?.devices?.nodes.map(({ lastVisitedAt }) => lastVisitedAt) ?? [];
  const kinds = latestDttSession?.segments.map(({ type, rawType }) => (type === 'UNKNOWN' ? rawType : type));
  const next: string | null | undefined = viewer?.devices?.pageInfo.endCursor;
  return [viewer?.scheduleType ?? 'AUTO', ...visited, ...(kinds ?? []), next].filter((name) => name != null);
}

/** A template is named by one of its ids. */
export const byGlobalId: VariablesOf<typeof activation> = { template: { id: 'RHR0VGVtcGxhdGU6MQ' } };
export const byInteger: VariablesOf<typeof activation> = { template: { databaseId: 1 } };
// @ts-expect-error It is named by at least one.
export const byNeither: VariablesOf<typeof activation> = { template: {} };
