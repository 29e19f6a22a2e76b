/** The time that is left of an active lock session. */

import { Time, TimeAgo, useNow } from './time.tsx';

interface CountdownProps {
  startedAt: string;
  endsAt: string | null | undefined;
}

export function Countdown({ startedAt, endsAt }: CountdownProps) {
  const now = useNow(1_000);
  const [start, end] = [Date.parse(startedAt), Date.parse(endsAt ?? '')];
  if (Number.isNaN(end))
    return (
      <p class="countdown">
        Its end is not known. It started <TimeAgo at={startedAt} />.
      </p>
    );
  const left = Math.max(Math.ceil((end - now) / 1_000), 0);
  const passed = Math.min(Math.max((now - start) / (end - start), 0), 1) || 0;
  return (
    <div class="countdown">
      {/* Screen readers read a timer when the user asks for it, and not every second. */}
      <p role="timer" aria-label="Remaining time" class="remaining">
        {partsOf(left).map(([count, unit]) => (
          <span key={unit}>
            {count}
            <small>{unit}</small>{' '}
          </span>
        ))}
        <small>left</small>
      </p>
      <progress aria-label="Time passed of this lock session" max={1} value={passed}>
        {percent.format(passed)}
      </progress>
      <p class="hint">
        {left > 0 ? (
          <>
            Ends <Time at={endsAt} />
          </>
        ) : (
          <>
            Was due to end <TimeAgo at={endsAt} />
          </>
        )}
      </p>
      <p role="status">{left === 0 && 'It runs until the service ends it.'}</p>
    </div>
  );
}

const percent = new Intl.NumberFormat(undefined, { style: 'percent' });

/** Days, hours, minutes and seconds, without those that are zero at the beginning. */
function partsOf(seconds: number) {
  const parts = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3_600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'min'],
    [seconds % 60, 's'],
  ] as const;
  const first = parts.findIndex(([count]) => count > 0);
  return parts.slice(first === -1 ? -1 : first);
}
