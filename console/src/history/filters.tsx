/** Which sessions are shown. Whatever is chosen becomes the address. */

import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import type { HistoryProgramsQuery, HistoryTrainersQuery } from '../../generated/graphql.ts';
import { databaseIdOf } from '../parts/address.ts';
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
      <Choice
        label="Trainer"
        chosen={address.trainer}
        options={(trainers?.dttSessionStats?.groups ?? []).flatMap(({ trainerId, trainer, sessionCount }) =>
          trainerId == null
            ? []
            : [[trainerId, `${trainerName(trainer, trainerId)} (${number(sessionCount)})`]],
        )}
        unknown={(id) => `Trainer #${id}`}
        onChoose={(trainer) => show({ trainer: databaseIdOf(trainer) })}
      />
      <Choice
        label="Program"
        chosen={address.program}
        options={(programs?.dttSessionStats?.groups ?? []).map(({ templateId, template, sessionCount }) => [
          templateId ?? 'none',
          `${programName(template, templateId)} (${number(sessionCount)})`,
        ])}
        unknown={(id) => (id === 'none' ? 'No program' : `Program #${id}`)}
        onChoose={(program) => show({ program: program === 'none' ? 'none' : databaseIdOf(program) })}
      />
      <Choice
        label="Result"
        chosen={address.passed}
        options={results.map((result) => [
          result,
          resultName(result === 'unknown' ? undefined : result === 'yes'),
        ])}
        unknown={(result) => result}
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
  // While a date is typed it becomes several: one step back leads to what was shown before it was begun.
  const isBegun = useRef(false);
  // What cannot be shown stays as it was typed, until it can.
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
          isBegun.current = false;
        }}
        onChange={({ currentTarget: { value } }) => {
          const day = parseDay(value);
          if (day === undefined && value !== '') return;
          const range = { ...(typed ?? days), [side]: day };
          const isBackwards = range.from !== undefined && range.to !== undefined && range.from > range.to;
          setTyped(isBackwards ? range : undefined);
          if (isBackwards) return;
          const isOpen = range.from === undefined && range.to === undefined;
          route(hrefOf(change(address, { range: isOpen ? 'all' : range })), isBegun.current);
          isBegun.current = true;
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

interface ChoiceProps<Value extends string | number> {
  label: string;
  chosen: Value | undefined;
  options: readonly (readonly [value: Value, name: string])[];
  /** What is chosen, where the options do not have it. */
  unknown(chosen: Value): string;
  onChoose(value: string | undefined): void;
}

function Choice<Value extends string | number>({
  label,
  chosen,
  options,
  unknown,
  onChoose,
}: ChoiceProps<Value>) {
  const isKnown = chosen === undefined || options.some(([value]) => value === chosen);
  return (
    <label>
      {label}{' '}
      <select
        value={chosen ?? ''}
        onChange={({ currentTarget: { value } }) => onChoose(value === '' ? undefined : value)}
      >
        <option value="">All</option>
        {!isKnown && <option value={chosen}>{unknown(chosen)}</option>}
        {options.map(([value, name]) => (
          <option key={value} value={value}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}
