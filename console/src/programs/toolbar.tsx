/** The controls above the list of programs. All of them write into the address. */

import { useEffect, useRef, useState } from 'preact/hooks';
import { useAddress } from '../parts/address.ts';
import { firstPage } from '../parts/paging.tsx';
import { type Filters, orders, shows } from './filters.ts';

/** In milliseconds: how long nothing is typed until it is searched for. */
const pause = 350;

export function Toolbar({ filters }: { filters: Filters }) {
  const { change } = useAddress();
  const { show, order } = filters;
  return (
    <search class="filters programs-filters">
      <Search searched={filters.search} />
      <Choice
        label="Show"
        choices={shows}
        chosen={show}
        onChoose={(name) => change({ ...firstPage, show: name })}
      />
      <Choice
        label="Order"
        choices={orders}
        chosen={order}
        onChoose={(name) => change({ ...firstPage, order: name })}
      />
    </search>
  );
}

function Search({ searched }: { searched: string }) {
  const { change } = useAddress();
  /** As it is when the time comes: the address may have changed since the last key. */
  const latestChange = useRef(change);
  latestChange.current = change;
  const [typed, setTyped] = useState(searched);
  /** What is searched for as far as is known here: any other search was gone to by a link, back or forward. */
  const known = useRef(searched);
  useEffect(() => {
    if (searched !== known.current) setTyped(searched);
    known.current = searched;
  }, [searched]);
  useEffect(() => {
    const search = typed.trim();
    if (search === known.current) return;
    const timer = setTimeout(() => {
      known.current = search;
      latestChange.current({ ...firstPage, search: search || undefined }, true);
    }, pause);
    return () => clearTimeout(timer);
  }, [typed]);
  return (
    <label>
      Search by name
      <input
        type="search"
        autoComplete="off"
        value={typed}
        onInput={({ currentTarget }) => setTyped(currentTarget.value)}
      />
    </label>
  );
}

interface ChoiceProps {
  label: string;
  choices: Readonly<Record<string, { readonly label: string }>>;
  chosen: string;
  /** @param name undefined for the first, which the address leaves out. */
  onChoose(name: string | undefined): void;
}

function Choice({ label, choices, chosen, onChoose }: ChoiceProps) {
  const [usual] = Object.keys(choices);
  return (
    <label>
      {label}
      <select
        value={chosen}
        onChange={({ currentTarget: { value } }) => onChoose(value === usual ? undefined : value)}
      >
        {Object.entries(choices).map(([name, choice]) => (
          <option key={name} value={name}>
            {choice.label}
          </option>
        ))}
      </select>
    </label>
  );
}
