/** The filters of the list of lock sessions. They are parameters of the address. */

import type { ResultOf } from '@graphql-typed-document-node/core';
import { graphql } from '../api/graphql.ts';
import type { LiveResult } from '../api/useLive.ts';
import { type Address, databaseIdOf, useAddress } from '../parts/address.ts';
import { capitalised } from '../parts/capitalised.ts';
import { FilterSelect } from '../parts/filterSelect.tsx';
import { messageOf } from '../parts/loaded.tsx';
import { numberText } from '../parts/number.ts';
import { firstPage } from '../parts/paging.tsx';

/** How many sessions have which state and template. */
export const filterCounts = graphql(`
  query LockSessionChoices {
    lockSessionStats(by: [LOCK_STATE, TEMPLATE], maxGroups: 1000) {
      groups {
        lockState
        templateId
        template {
          id
          name
        }
        sessionCount
      }
    }
  }
`);

/** Stands in an address for sessions without a template. */
const noTemplate = 'none';

const activities = { yes: 'Running', no: 'Not running' };

/** The condition that the address stands for. Values that cannot be right are left out. */
export function whereOf({ state, template, active }: Address['query']) {
  const templateId = databaseIdOf(template);
  return {
    ...(state && { lockState: { eq: state } }),
    ...(template === noTemplate && { templateId: { isNull: true } }),
    ...(templateId !== undefined && { templateId: { eq: templateId } }),
    ...((active === 'yes' || active === 'no') && { isActive: { eq: active === 'yes' } }),
  };
}

export function Filters({ result: { data, error } }: { result: LiveResult<ResultOf<typeof filterCounts>> }) {
  const { query, hrefWith, change } = useAddress();
  const groups = data?.lockSessionStats?.groups ?? [];
  const states = countSessions(groups, ({ lockState }) => [lockState ?? '', capitalised(lockState ?? '')]);
  const templates = countSessions(groups, ({ templateId, template }) => [
    String(templateId ?? noTemplate),
    template?.name ?? (templateId == null ? 'No template' : `Template ${templateId}`),
  ]);
  const set = (name: string) => (value: string | undefined) => change({ ...firstPage, [name]: value });
  const isFiltered = Object.keys(whereOf(query)).length > 0;
  if (data?.lockSessionStats && states.length === 0 && !isFiltered) return null;
  return (
    <search class="filters lock-filters" aria-label="Lock sessions">
      <FilterSelect
        label="State"
        chosen={query.state || undefined}
        options={states.filter(([value]) => value !== '')}
        nameUnlisted={capitalised}
        onChoose={set('state')}
      />
      <FilterSelect
        label="Template"
        chosen={query.template || undefined}
        options={templates}
        nameUnlisted={(template) => template}
        onChoose={set('template')}
      />
      <FilterSelect
        label="Activity"
        chosen={query.active || undefined}
        options={Object.entries(activities)}
        nameUnlisted={(activity) => activity}
        onChoose={set('active')}
      />
      {isFiltered && (
        <a href={hrefWith({ ...firstPage, state: undefined, template: undefined, active: undefined })}>
          Clear filters
        </a>
      )}
      {error && <p class="note bad">The choices could not be loaded: {messageOf(error)}</p>}
    </search>
  );
}

/** The values that occur, each with its name and how many sessions have it. */
function countSessions<Group extends { readonly sessionCount: number }>(
  groups: readonly Group[],
  nameOf: (group: Group) => readonly [value: string, name: string],
): [value: string, name: string][] {
  const counts = new Map<string, { name: string; sessions: number }>();
  for (const group of groups) {
    const [value, name] = nameOf(group);
    const sessions = (counts.get(value)?.sessions ?? 0) + group.sessionCount;
    counts.set(value, { name, sessions });
  }
  return [...counts].map(([value, { name, sessions }]) => [value, `${name} (${numberText(sessions)})`]);
}
