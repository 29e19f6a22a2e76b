/** The lock templates, from which lock sessions are started. */

import type { ResultOf } from '@graphql-typed-document-node/core';
import { graphql } from '../api/graphql.ts';
import type { LiveResult } from '../api/useLive.ts';
import { useAddress } from '../parts/address.ts';
import { Facts } from '../parts/facts.tsx';
import { Empty, Loaded } from '../parts/loaded.tsx';
import { numberText } from '../parts/number.ts';
import { firstPage } from '../parts/paging.tsx';
import { duration, Time } from '../parts/time.tsx';

export const lockTemplates = graphql(`
  query LockTemplates {
    lockTemplates(first: 100) {
      totalCount
      nodes {
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
    }
  }
`);

export function LockTemplates({ result }: { result: LiveResult<ResultOf<typeof lockTemplates>> }) {
  return (
    <Loaded result={result}>
      {({ lockTemplates }) =>
        lockTemplates &&
        (lockTemplates.nodes.length === 0 ? (
          <Empty>
            No template yet. Lock sessions are started from templates: each is here as soon as the service
            knows it as yours.
          </Empty>
        ) : (
          <>
            <ul class="lock-templates">
              {lockTemplates.nodes.map((template) => (
                <li key={template.id} class="card">
                  <LockTemplateCard template={template} />
                </li>
              ))}
            </ul>
            {lockTemplates.totalCount > lockTemplates.nodes.length && (
              <p class="hint">
                The newest {lockTemplates.nodes.length} of {numberText(lockTemplates.totalCount)}.
              </p>
            )}
          </>
        ))
      }
    </Loaded>
  );
}

interface Template {
  readonly databaseId: number;
  readonly name: string;
  readonly durationSeconds: number;
  readonly isRandomDuration: boolean;
  readonly isBreakEnabled: boolean;
  readonly breakRegularitySeconds?: number | null | undefined;
  readonly isEmergencyUnlockEnabled: boolean;
  readonly createdAt: string;
}

function LockTemplateCard({ template }: { template: Template }) {
  const { hrefWith } = useAddress();
  return (
    <>
      <h3>{template.name}</h3>
      <LockTemplateFacts template={template} />
      <a href={hrefWith({ ...firstPage, template: String(template.databaseId) })}>
        View sessions<span class="hidden">: {template.name}</span>
      </a>
    </>
  );
}

export const LockTemplateFacts = ({ template }: { template: Template }) => (
  <Facts
    of={[
      ['Duration', `${duration(template.durationSeconds)}${template.isRandomDuration ? ', random' : ''}`],
      ['Breaks', breaksOf(template)],
      ['Emergency unlock', template.isEmergencyUnlockEnabled ? 'Possible' : 'Not possible'],
      ['Created', <Time key="created" at={template.createdAt} />],
    ]}
  />
);

const regularities = new Map([
  [60 * 60, 'Hourly'],
  [24 * 60 * 60, 'Daily'],
  [7 * 24 * 60 * 60, 'Weekly'],
]);

function breaksOf({ isBreakEnabled, breakRegularitySeconds: seconds }: Template): string {
  if (!isBreakEnabled) return 'None';
  return seconds == null ? 'Yes' : (regularities.get(seconds) ?? `Every ${duration(seconds)}`);
}
