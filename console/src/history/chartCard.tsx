/** The chart with its controls, its table and its export. */

import { useMemo } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import { change, figureNames, type HistoryAddress, hrefOf } from './address.ts';
import { type Period, periods } from './calendar.ts';
import { Chart } from './chart.tsx';
import { download } from './download.ts';
import { groupsAsCsv } from './exported.ts';
import { figures } from './figures.ts';
import { GroupsTable } from './groupsTable.tsx';
import { isPossible } from './range.ts';
import type { Stats } from './stats.ts';

interface ChartCardProps {
  /** Without groups until they have arrived. */
  stats: Pick<Stats, 'groups' | 'by'>;
  address: HistoryAddress;
  /** How many days are shown. */
  length: number;
  /** Without the extension. */
  fileName: string;
  /** Whether the statistics of the address have not arrived yet. */
  isPending: boolean;
}

const periodNames = { DAY: 'Day', WEEK: 'Week', MONTH: 'Month' } as const;

export function ChartCard({ stats: { groups, by }, address, length, fileName, isPending }: ChartCardProps) {
  const { route } = useLocation();
  // Sessions with an infinite time belong to no period, and are not in the chart.
  const dated = useMemo(() => groups.filter(({ period }) => period), [groups]);
  return (
    <section class="card history-card" aria-labelledby="over-time">
      <div class="history-chart-head">
        <h2 id="over-time">Over time</h2>
        <FigureChoice address={address} />
        <PeriodChoice by={by} address={address} length={length} />
      </div>
      <Chart
        groups={dated}
        by={by}
        figure={address.figure}
        onSelect={(from, to) => route(hrefOf(change(address, { range: { from, to }, by: undefined })))}
      />
      <GroupsTable groups={groups} by={by} address={address} />
      <div class="history-csv">
        <button
          type="button"
          disabled={isPending}
          onClick={() =>
            download(`${fileName}-by-${by.toLowerCase()}.csv`, [groupsAsCsv.head, groupsAsCsv.lines(groups)])
          }
        >
          Save these numbers as CSV
        </button>
      </div>
    </section>
  );
}

function FigureChoice({ address }: Pick<ChartCardProps, 'address'>) {
  const { route } = useLocation();
  return (
    <label>
      Line shows{' '}
      <select
        value={address.figure}
        onChange={({ currentTarget: { value } }) =>
          route(hrefOf({ ...address, figure: figureNames.find((name) => name === value) ?? address.figure }))
        }
      >
        {figureNames.map((name) => (
          <option key={name} value={name}>
            {figures[name].label}
          </option>
        ))}
      </select>
    </label>
  );
}

function PeriodChoice({ by, address, length }: Pick<ChartCardProps, 'address' | 'length'> & { by: Period }) {
  return (
    <nav class="history-choices" aria-label="Periods">
      {periods.map((period) =>
        isPossible(period, length) ? (
          <a
            key={period}
            href={hrefOf({ ...address, by: period })}
            aria-current={period === by ? 'true' : undefined}
          >
            {periodNames[period]}
          </a>
        ) : (
          <span key={period} class="hint" title="The range is too long for this.">
            {periodNames[period]}
          </span>
        ),
      )}
    </nav>
  );
}
