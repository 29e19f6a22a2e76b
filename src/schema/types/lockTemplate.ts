/** Lock templates. */

import { builder } from '../builder.ts';
import { addQueries, addViewerField, nullOnlyInMirror, relatedListField } from '../fields.ts';
import { findVisible } from '../loading/reads.ts';
import { LockSession } from './lockSession.ts';
import { ownerField } from './user.ts';

export const LockTemplate = builder.prismaNode('LockTemplate', {
  description: 'A template that lock sessions are started from.',
  id: { field: 'id' },
  fields: (t) => ({
    databaseId: t.exposeInt('id', { description: 'The integer id of the REST interface.' }),
    ownerId: t.exposeInt('ownerId', { description: 'Integer id of the user whom it belongs to.' }),
    name: t.exposeString('name', { description: 'Name.' }),
    durationSeconds: t.exposeInt('duration', { description: 'How long a session lasts, in seconds.' }),
    isRandomDuration: t.exposeBoolean('isRandomDuration', {
      description: 'Whether the duration is drawn at random.',
    }),
    isBreakEnabled: t.exposeBoolean('isBreakEnabled', { description: 'Whether there are breaks.' }),
    breakRegularitySeconds: t.exposeInt(
      'breakRegularity',
      nullOnlyInMirror('Time from one break to the next, in seconds.'),
    ),
    isEmergencyUnlockEnabled: t.exposeBoolean('isEmergencyUnlockEnabled', {
      description: 'Whether a session can be ended in an emergency.',
    }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When it was created.' }),
  }),
});

builder.prismaObjectFields(LockTemplate, (t) => ({
  owner: t.field(ownerField),
  sessions: t.connection(
    ...relatedListField(
      { model: 'LockTemplate', relation: 'sessions' },
      'LockSession',
      LockSession,
      "The viewer's lock sessions started from this template, newest first.",
    ),
  ),
}));

addQueries('LockTemplate', LockTemplate, {
  one: 'A lock template of the viewer.',
  all: "The viewer's lock templates, newest first.",
});

addViewerField(
  'activeLockTemplate',
  LockTemplate,
  'The template of the active lock session, null when no session is active or it has no template.',
  findVisible('LockTemplate', ({ id }) => ({ sessions: { some: { ownerId: id, isActive: true } } })),
);
