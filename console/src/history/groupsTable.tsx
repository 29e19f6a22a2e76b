/** Show the numbers as a table. Each period links to the history of its days, as dragging over the chart does. */

import { useState } from 'preact/hooks';
import { unknownCountOf } from '../parts/sums.ts';
import { change, type HistoryAddress, hrefOf } from './address.ts';
import { lastDayOf, type Period } from './calendar.ts';
import { figures, number, orNothing } from './figures.ts';
import { periodName } from './periodName.ts';
import type { Group } from './queries.ts';

interface GroupsTableProps {
  groups: readonly Group[];
  by: Period;
  address: HistoryAddress;
}

const columns = Object.values(figures);

export function GroupsTable(props: GroupsTableProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>Show the numbers as a table</summary>
      {/* Hundreds of rows take long to render, so this waits until the table is opened. */}
      {isOpen && <Table {...props} />}
    </details>
  );
}

function Table({ groups, by, address }: GroupsTableProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reachable by keyboard.
    <section class="scroll history-numbers" tabIndex={0} aria-label="Numbers of the chart">
      <table>
        <thead>
          <tr>
            <th scope="col">{{ DAY: 'Day', WEEK: 'Week', MONTH: 'Month' }[by]}</th>
            {['Sessions', 'Passed', 'Not passed', 'No result', ...columns.map(({ label }) => label)].map(
              (name) => (
                <th key={name} scope="col" class="number">
                  {name}
                </th>
              ),
            )}
          </tr>
        </thead>
        <tbody>
          {groups.map((group) => (
            <Row key={group.period?.date} group={group} by={by} address={address} />
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Row({ group, by, address }: Omit<GroupsTableProps, 'groups'> & { group: Group }) {
  const { period, sessionCount, passedSessionCount, failedSessionCount } = group;
  return (
    <tr>
      <th scope="row">
        {period ? (
          <a href={hrefOf(change(address, { range: { from: period.date, to: lastDayOf(period.date, by) } }))}>
            {periodName(period.date, by)}
          </a>
        ) : (
          'Without a date'
        )}
      </th>
      {[sessionCount, passedSessionCount, failedSessionCount, unknownCountOf(group)].map((count, index) => (
        <td key={index} class="number">
          {number(count)}
        </td>
      ))}
      {columns.map(({ label, of, format }) => (
        <td key={label} class="number">
          {orNothing(of(group), format)}
        </td>
      ))}
    </tr>
  );
}
