/** Lock templates. */

import { addViewerField, findVisible, listBelow, listedRecord, nullOnlyInMirror } from '../fields.ts';
import { ownerField } from './user.ts';

listedRecord('LockTemplate', {
  description: 'A template that lock sessions are started from.',
  one: 'A lock template of the viewer.',
  all: "The viewer's lock templates, newest first.",
  columns: {
    ownerId: 'Integer id of the user whom it belongs to.',
    name: 'Name.',
    durationSeconds: { column: 'duration', description: 'How long a session lasts, in seconds.' },
    isRandomDuration: 'Whether the duration is drawn at random.',
    isBreakEnabled: 'Whether there are breaks.',
    breakRegularitySeconds: {
      column: 'breakRegularity',
      ...nullOnlyInMirror('Time from one break to the next, in seconds.'),
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
        "The viewer's lock sessions started from this template, newest first.",
      ),
    ),
  }),
});

addViewerField('activeLockTemplate', {
  description:
    'The template of the active lock session, null when no session is active or it has no template.',
  ...findVisible('LockTemplate', ({ id }) => ({ sessions: { some: { ownerId: id, isActive: true } } })),
});
