/** Lock templates. */

import { addViewerField, findVisible, listBelow, listedRecord, nullIfUnknown } from '../fields.ts';
import { ownerField } from './user.ts';

listedRecord('LockTemplate', {
  description: 'A template that lock sessions are started from.',
  one: 'One of your lock templates.',
  all: 'Your lock templates, newest first.',
  columns: {
    ownerId: 'Integer id of its owner.',
    name: 'Name.',
    durationSeconds: { column: 'duration', description: 'How long a session lasts, in seconds.' },
    isRandomDuration: 'Whether the duration is drawn at random.',
    isBreakEnabled: 'Whether there are breaks.',
    breakRegularitySeconds: {
      column: 'breakRegularity',
      ...nullIfUnknown('Time from one break to the next, in seconds.'),
    },
    isEmergencyUnlockEnabled: 'Whether a session can be ended in an emergency.',
    createdAt: 'When it was created.',
  },
  fields: (t) => ({
    owner: t.field(ownerField),
    sessions: t.connection(
      ...listBelow(
        'LockTemplate',
        'sessions',
        'LockSession',
        'Your lock sessions started from this template, newest first.',
      ),
    ),
  }),
});

addViewerField('activeLockTemplate', {
  description:
    'The template of the active lock session, null when no session is active or it has no template.',
  ...findVisible('LockTemplate', ({ id }) => ({ sessions: { some: { ownerId: id, isActive: true } } })),
});
