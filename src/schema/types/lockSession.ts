/** Lock sessions with their history and their statistics. */

import {
  addViewerField,
  children,
  derive,
  findNewest,
  findVisible,
  listedRecord,
  nullIfUnknown,
  record,
  toOne,
} from '../fields.ts';
import { addStatistics, parts, records } from '../statistics.ts';
import { ownerField } from './user.ts';

listedRecord('LockSession', {
  description: 'A lock session.',
  one: 'One of your lock sessions.',
  all: 'Your lock sessions, newest first.',
  columns: {
    bubbleId: 'Public identifier.',
    publicId: 'Another public identifier.',
    ownerId: 'Integer id of its owner.',
    name: nullIfUnknown('Name.'),
    lockState: 'State; `pending`, `locked`, `break`, `completed` and `abandoned` have been seen.',
    durationSeconds: { column: 'duration', description: 'How long it lasts, in seconds.' },
    startedAt: { column: 'startDate', description: 'When it started.' },
    createdAt: 'When it was created, null if it is not known.',
    isActive: 'Whether it is under way. You have at most one such session.',
    templateId: 'Integer id of the template that it was started from, if any.',
  },
  fields: (t) => ({
    endsAt: t.field({
      type: 'DateTime',
      nullable: true,
      description:
        'When it is due to end, or ended; null if it is not known. For an active session: start plus duration, unless the ' +
        'service says otherwise. It may have passed: the session is active until the service ends it.',
      ...derive(['endDate', 'isActive', 'startDate', 'duration'], endOf),
    }),
    segments: t.field({
      description: 'Its history, oldest first.',
      ...children('LockSegment', 'segments', [{ createdAt: 'asc' }, { id: 'asc' }]),
    }),
    owner: t.field(ownerField),
    template: t.field({
      description: 'The template that it was started from, if any.',
      ...toOne('LockTemplate', 'templateId'),
    }),
  }),
});

interface Times {
  readonly endDate: Date | null;
  readonly isActive: boolean;
  readonly startDate: Date;
  readonly duration: number;
}

/** The end is computed on each read, so that it stays correct when the start or the duration changes. */
function endOf({ endDate, isActive, startDate, duration }: Times): Date | null {
  if (endDate !== null || !isActive) return endDate;
  const end = new Date(Number(startDate) + duration * 1000);
  // The sum is invalid if the start is infinite or the end is beyond the range of `Date`. Then the start is shown as the end.
  return Number.isNaN(end.getTime()) ? startDate : end;
}

record('LockSegment', {
  description: 'An event in the history of a lock session.',
  columns: {
    type: 'Kind of event; `start`, `break`, `lock` and others have been seen.',
    createdAt: 'When it happened.',
    isLocked: 'Whether the device was locked from then on.',
  },
  fields: (t) => ({
    session: t.field({
      description: 'The lock session whose history it belongs to.',
      ...toOne('LockSession', 'sessionId'),
    }),
  }),
});

addViewerField('activeLockSession', {
  description: 'Your active lock session, null when none is.',
  ...findVisible('LockSession', () => ({ isActive: true })),
});

addViewerField('latestLockSession', {
  description: 'Your newest lock session, null when there is none.',
  ...findNewest('LockSession'),
});

addStatistics({
  model: 'LockSession',
  noun: 'lock sessions',
  descriptions: {
    query: 'Statistics of your lock sessions, by when they started.',
    figures:
      'Figures of lock sessions. An average or a sum of none is null. Sums may go beyond what an Int can hold.',
    total: 'All sessions together.',
    period:
      'The day, week or month in which they started. Null as well for sessions whose time is before the year 1, after the ' +
      'year 9999 or infinite.',
  },
  parts: 'segments',
  time: { field: 'startedAt', column: 'startDate' },
  keys: {
    templateId: {
      columns: ['templateId'],
      by: ['TEMPLATE', 'By the template that they were started from, if any.'],
      type: 'Int',
      description: 'Integer id of the template; null as well for sessions without one.',
      link: {
        name: 'template',
        model: 'LockTemplate',
        description: 'The template; null as well for sessions without one.',
      },
    },
    lockState: {
      columns: ['lockState'],
      by: ['LOCK_STATE', 'By their state.'],
      type: 'String',
      description: 'The state.',
    },
  },
  figures: {
    sessionCount: records('count', 'How many sessions.'),
    activeSessionCount: records('count', 'How many of them are under way: one at most.', 'isActive', true),
    averageDurationSeconds: records('mean', 'How long they last on average, in seconds.', 'duration'),
    totalDurationSeconds: records('sum', 'How long they last together, in seconds.', 'duration'),
    firstSessionAt: records('first', 'When the first session started.', 'startDate'),
    lastSessionAt: records('last', 'When the last session started.', 'startDate'),
    segmentCount: parts('count', 'How many events there are in their history.'),
  },
});
