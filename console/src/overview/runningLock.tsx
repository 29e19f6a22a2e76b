/** The active lock session. */

import { Badge } from '../parts/badge.tsx';
import { capitalised } from '../parts/capitalised.ts';
import { Countdown } from '../parts/countdown.tsx';
import { Empty } from '../parts/loaded.tsx';
import { base } from '../paths.ts';
import type { Viewer } from './query.ts';

export function RunningLock({ lock }: { lock: Viewer['activeLockSession'] }) {
  return lock ? (
    <>
      <p class="lead head">
        <a href={`${base}/locks/${lock.databaseId}`}>{lock.name || `Lock session ${lock.databaseId}`}</a>
        <Badge kind="accent">{capitalised(lock.lockState)}</Badge>
      </p>
      <Countdown startedAt={lock.startedAt} endsAt={lock.endsAt} />
    </>
  ) : (
    <Empty>
      No lock session is running. When one starts, the time that is left is shown here.{' '}
      <a href={`${base}/locks`}>Earlier ones</a>
    </Empty>
  );
}
