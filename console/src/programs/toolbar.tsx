/** The search, the filter and the order above the list of programs. All of them are parameters of the address. */

import { useEffect, useRef, useState } from 'preact/hooks';
import { useAddress } from '../parts/address.ts';
import { firstPage } from '../parts/paging.tsx';
import { type Filters, orders, shows } from './filters.ts';

/** In milliseconds: the search begins when nothing was typed for this long. */
const debounceTime = 350;

export function Toolbar({ filters }: { filters: Filters }) {
  const { change } = useAddress();
  const { show, order } = filters;
  return (
    <search class="filters programs-filters">
      <Search searched={filters.search} />
      <SelectWithDefault
        label="Show"
        options={shows}
        chosen={show}
        onChoose={(name) => change({ ...firstPage, show: name })}
      />
      <SelectWithDefault
        label="Order"
        options={orders}
        chosen={order}
        onChoose={(name) => change({ ...firstPage, order: name })}
      />
    </search>
  );
}

function Search({ searched }: { searched: string }) {
  const { change } = useAddress();
  /** The address may change between the last key and the search, so the search uses the `change` of the latest render. */
  const latestChange = useRef(change);
  latestChange.current = change;
  const [typed, setTyped] = useState(searched);
  /** The search that this field has set or taken over. Any other one in the address comes from a link, back or forward. */
  const ownSearch = useRef(searched);
  useEffect(() => {
    if (searched !== ownSearch.current) setTyped(searched);
    ownSearch.current = searched;
  }, [searched]);
  useEffect(() => {
    const search = typed.trim();
    if (search === ownSearch.current) return;
    const timer = setTimeout(() => {
      ownSearch.current = search;
      latestChange.current({ ...firstPage, search: search || undefined }, true);
    }, debounceTime);
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

interface SelectWithDefaultProps {
  label: string;
  options: Readonly<Record<string, { readonly label: string }>>;
  chosen: string;
  /** @param name undefined for the first option, the default. */
  onChoose(name: string | undefined): void;
}

function SelectWithDefault({ label, options, chosen, onChoose }: SelectWithDefaultProps) {
  const [defaultName] = Object.keys(options);
  return (
    <label>
      {label}
      <select
        value={chosen}
        onChange={({ currentTarget: { value } }) => onChoose(value === defaultName ? undefined : value)}
      >
        {Object.entries(options).map(([name, option]) => (
          <option key={name} value={name}>
            {option.label}
          </option>
        ))}
      </select>
    </label>
  );
}
