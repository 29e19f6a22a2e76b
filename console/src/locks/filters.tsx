/** What the list of lock sessions is narrowed to, in the address. */

import type { ResultOf } from '@graphql-typed-document-node/core';
import { graphql } from '../api/graphql.ts';
import type { LiveResult } from '../api/useLive.ts';
import { type Address, databaseIdOf, useAddress } from '../parts/address.ts';
import { messageOf } from '../parts/loaded.tsx';
import { numberText } from '../parts/number.ts';
import { firstPage } from '../parts/paging.tsx';

/** How many sessions there are of which state and template. */
export const choices = graphql(`
  query LockSessionChoices {
    lockSessionStats(by: [STATE, TEMPLATE], maxGroups: 1000) {
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

/** In an address, of sessions without a template. */
const none = 'none';

const activities = { yes: 'Under way', no: 'Not under way' };

/** The conditions that the address names; what it cannot mean is left out. */
export function whereOf({ state, template, active }: Address['query']) {
  const templateId = databaseIdOf(template);
  return {
    ...(state && { lockState: { eq: state } }),
    ...(template === none && { templateId: { isNull: true } }),
    ...(templateId !== undefined && { templateId: { eq: templateId } }),
    ...((active === 'yes' || active === 'no') && { isActive: { eq: active === 'yes' } }),
  };
}

export function Filters({ result: { data, error } }: { result: LiveResult<ResultOf<typeof choices>> }) {
  const { query, hrefWith, change } = useAddress();
  const groups = data?.lockSessionStats?.groups ?? [];
  const states = count(groups, ({ lockState }) => [lockState ?? '', lockState ?? 'no state']);
  const templates = count(groups, ({ templateId, template }) => [
    String(templateId ?? none),
    template?.name ?? (templateId == null ? 'No template' : `Template ${templateId}`),
  ]);
  const set = (name: string) => (value: string) => change({ ...firstPage, [name]: value });
  const isNarrowed = Object.keys(whereOf(query)).length > 0;
  if (data?.lockSessionStats && states.length === 0 && !isNarrowed) return null;
  return (
    <search class="filters lock-filters" aria-label="Lock sessions">
      <Choice name="State" value={query.state} options={states} onChange={set('state')} />
      <Choice name="Template" value={query.template} options={templates} onChange={set('template')} />
      <Choice
        name="Activity"
        value={query.active}
        options={Object.entries(activities).map(([value, text]) => ({ value, text }))}
        onChange={set('active')}
      />
      {isNarrowed && (
        <a href={hrefWith({ ...firstPage, state: undefined, template: undefined, active: undefined })}>
          Clear filters
        </a>
      )}
      {error && <p class="note bad">What can be chosen is not known: {messageOf(error)}</p>}
    </search>
  );
}

interface Option {
  readonly value: string;
  readonly text: string;
}

interface ChoiceProps {
  name: string;
  value: string | undefined;
  options: readonly Option[];
  onChange(value: string): void;
}

function Choice({ name, value = '', options, onChange }: ChoiceProps) {
  // Of what the address names there may be none (any more), and it is chosen all the same.
  const all = options.some((option) => option.value === value)
    ? options
    : [...options, { value, text: value }];
  return (
    <label>
      {name}
      <select value={value} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
        <option value="">All</option>
        {all
          .filter((option) => option.value !== '')
          .map((option) => (
            <option key={option.value} value={option.value}>
              {option.text}
            </option>
          ))}
      </select>
    </label>
  );
}

/** What there is, with how many sessions there are of it. */
function count<Group extends { readonly sessionCount: number }>(
  groups: readonly Group[],
  nameOf: (group: Group) => readonly [value: string, text: string],
): Option[] {
  const counts = new Map<string, { text: string; sessions: number }>();
  for (const group of groups) {
    const [value, text] = nameOf(group);
    const sessions = (counts.get(value)?.sessions ?? 0) + group.sessionCount;
    counts.set(value, { text, sessions });
  }
  return [...counts].map(([value, { text, sessions }]) => ({
    value,
    text: `${text} (${numberText(sessions)})`,
  }));
}
