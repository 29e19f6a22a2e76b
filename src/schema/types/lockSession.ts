/** Lock sessions with their history. */

import { builder } from '../builder.ts';
import { addQueries, addViewerField, nullOnlyInMirror, orNull } from '../fields.ts';
import { children, derive, findNewest, findVisible, toOne } from '../loading/reads.ts';
import { LockTemplate } from './lockTemplate.ts';
import { ownerField } from './user.ts';

export const LockSession = builder.prismaNode('LockSession', {
  description: 'A lock session.',
  id: { field: 'id' },
  fields: (t) => ({
    databaseId: t.exposeInt('id', { description: 'The integer id of the REST interface.' }),
    bubbleId: t.exposeString('bubbleId', { description: 'Internal identifier.' }),
    publicId: t.exposeString('publicId', { description: 'Public identifier.' }),
    ownerId: t.exposeInt('ownerId', { description: 'Integer id of the user whom it belongs to.' }),
    name: t.exposeString('name', nullOnlyInMirror('Name.')),
    lockState: t.exposeString('lockState', {
      description: 'State; `pending`, `locked`, `break`, `completed` and `abandoned` have been seen.',
    }),
    durationSeconds: t.exposeInt('duration', { description: 'How long it lasts, in seconds.' }),
    startedAt: t.expose('startDate', { type: 'DateTime', description: 'When it started.' }),
    endsAt: t.field({
      type: 'DateTime',
      ...orNull(
        'When it is due to end, or ended; null where nobody said so. Of an active one it is the start and the duration, unless the ' +
          'service says otherwise. It may have passed: the session is active until the service ends it.',
      ),
      ...derive(['endDate', 'isActive', 'startDate', 'duration'], endOf),
    }),
    createdAt: t.expose('createdAt', {
      type: 'DateTime',
      ...orNull('When it was created, null where nobody said so.'),
    }),
    isActive: t.exposeBoolean('isActive', {
      description: 'Whether it is under way. At most one of a user is.',
    }),
    templateId: t.exposeInt(
      'templateId',
      orNull('Integer id of the template that it was started from, if any.'),
    ),
  }),
});

/** The end is computed on each read, so that it stays correct when the start or the duration changes. */
function endOf({ endDate, isActive, startDate, duration }: Times): Date | null {
  if (endDate !== null || !isActive) return endDate;
  const end = new Date(Number(startDate) + duration * 1000);
  // The sum is invalid if the start is infinite or the end is beyond the range of `Date`: then the end is shown as the start is.
  return Number.isNaN(end.getTime()) ? startDate : end;
}

interface Times {
  readonly endDate: Date | null;
  readonly isActive: boolean;
  readonly startDate: Date;
  readonly duration: number;
}

builder.prismaObjectFields(LockSession, (t) => ({
  segments: t.field({
    type: [LockSegment],
    description: 'Its history, oldest first.',
    ...children<'LockSegment'>('segments', [{ createdAt: 'asc' }, { id: 'asc' }]),
  }),
  owner: t.field(ownerField),
  template: t.field({
    type: LockTemplate,
    ...orNull('The template that it was started from, if any.'),
    ...toOne('LockTemplate', 'templateId'),
  }),
}));

const LockSegment = builder.prismaNode('LockSegment', {
  description: 'An event in the history of a lock session.',
  id: { field: 'id' },
  fields: (t) => ({
    databaseId: t.exposeInt('id', { description: 'The integer id of the REST interface.' }),
    type: t.exposeString('type', {
      description: 'Kind of event; `start`, `break`, `lock` and others have been seen.',
    }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When it happened.' }),
    isLocked: t.exposeBoolean('isLocked', { description: 'Whether the device was locked from then on.' }),
    session: t.field({
      type: LockSession,
      ...orNull('The lock session whose history it belongs to.'),
      ...toOne('LockSession', 'sessionId'),
    }),
  }),
});

addQueries('LockSession', LockSession, {
  one: 'A lock session of the viewer.',
  all: "The viewer's lock sessions, newest first.",
});

addViewerField(
  'activeLockSession',
  LockSession,
  "The viewer's active lock session, null when none is.",
  findVisible('LockSession', () => ({ isActive: true })),
);

addViewerField(
  'latestLockSession',
  LockSession,
  "The viewer's newest lock session, null when there is none.",
  findNewest('LockSession'),
);
