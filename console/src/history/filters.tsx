/** The range and the filters of the history. Every choice becomes a part of the address. */

import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import type { HistoryProgramsQuery, HistoryTrainersQuery } from '../../generated/graphql.ts';
import { databaseIdOf } from '../parts/address.ts';
import { FilterSelect } from '../parts/filterSelect.tsx';
import { change, type HistoryAddress, hrefOf, results } from './address.ts';
import { parseDay } from './calendar.ts';
import { number } from './figures.ts';
import { programName, resultName, trainerName } from './names.ts';
import { type Between, presets } from './range.ts';

interface FiltersProps {
  address: HistoryAddress;
  /** The days that are shown. */
  days: Between;
  programs: HistoryProgramsQuery | undefined;
  trainers: HistoryTrainersQuery | undefined;
}

export function Filters({ address, days, programs, trainers }: FiltersProps) {
  const { route } = useLocation();
  const show = (changes: Partial<HistoryAddress>) => route(hrefOf(change(address, changes)));
  return (
    <div class="card filters history-filters">
      <div class="days">
        <Presets address={address} />
        <Dates address={address} days={days} />
      </div>
      <FilterSelect
        label="Trainer"
        chosen={address.trainer}
        options={(trainers?.dttSessionStats?.groups ?? []).flatMap(({ trainerId, trainer, sessionCount }) =>
          trainerId == null
            ? []
            : [[trainerId, `${trainerName(trainer, trainerId)} (${number(sessionCount)})`]],
        )}
        nameUnlisted={(id) => `Trainer #${id}`}
        onChoose={(trainer) => show({ trainer: databaseIdOf(trainer) })}
      />
      <FilterSelect
        label="Program"
        chosen={address.program}
        options={(programs?.dttSessionStats?.groups ?? []).map(({ templateId, template, sessionCount }) => [
          templateId ?? 'none',
          `${programName(template, templateId)} (${number(sessionCount)})`,
        ])}
        nameUnlisted={(id) => (id === 'none' ? 'No program' : `Program #${id}`)}
        onChoose={(program) => show({ program: program === 'none' ? 'none' : databaseIdOf(program) })}
      />
      <FilterSelect
        label="Result"
        chosen={address.passed}
        options={results.map((result) => [
          result,
          resultName(result === 'unknown' ? undefined : result === 'yes'),
        ])}
        nameUnlisted={(result) => result}
        onChoose={(chosen) => show({ passed: results.find((result) => result === chosen) })}
      />
    </div>
  );
}

const presetNames = { 30: '30 days', 90: '90 days', 365: 'Year', all: 'All' } as const;

function Presets({ address }: { address: HistoryAddress }) {
  return (
    <nav class="history-choices" aria-label="Range">
      {presets.map((preset) => (
        <a
          key={preset}
          href={hrefOf(change(address, { range: preset }))}
          aria-current={address.range === preset ? 'true' : undefined}
        >
          {presetNames[preset]}
        </a>
      ))}
    </nav>
  );
}

function Dates({ address, days }: Pick<FiltersProps, 'address' | 'days'>) {
  const { route } = useLocation();
  // Typing a date passes through several valid dates. Only the first is a new entry of the browser's history, so that one step
  // back leads to what was shown before.
  const hasEntry = useRef(false);
  // Dates that cannot be shown stay as they were typed until they can be.
  const [typed, setTyped] = useState<Between>();
  useEffect(() => setTyped(undefined), [days.from, days.to]);
  const problem = useId();
  const input = (side: keyof Between, label: string) => (
    <label>
      {label}{' '}
      <input
        type="date"
        min="1900-01-01"
        max="2999-12-31"
        value={(typed ?? days)[side] ?? ''}
        aria-invalid={typed !== undefined}
        aria-describedby={typed && problem}
        onFocus={() => {
          hasEntry.current = false;
        }}
        onChange={({ currentTarget: { value } }) => {
          const day = parseDay(value);
          if (day === undefined && value !== '') return;
          const range = { ...(typed ?? days), [side]: day };
          const isBackwards = range.from !== undefined && range.to !== undefined && range.from > range.to;
          setTyped(isBackwards ? range : undefined);
          if (isBackwards) return;
          const isOpen = range.from === undefined && range.to === undefined;
          route(hrefOf(change(address, { range: isOpen ? 'all' : range })), hasEntry.current);
          hasEntry.current = true;
        }}
      />
    </label>
  );
  return (
    <fieldset class="dates">
      <legend class="hidden">Between two days</legend>
      {input('from', 'From')} {input('to', 'To')}
      <p id={problem} role="status" class={typed ? 'note bad' : 'hidden'}>
        {typed && 'From is after To.'}
      </p>
    </fieldset>
  );
}
