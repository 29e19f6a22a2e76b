/** Lock templates. */

import { builder } from '../builder.ts';
import { nullOnlyInMirror, recordField, relatedListField, viewerListField } from '../fields.ts';
import { findVisible, toOne } from '../loading/reads.ts';
import { LockSession, LockSessionConnection } from './lockSession.ts';
import { User } from './user.ts';

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

export const LockTemplateConnection = builder.connectionObject({
  type: LockTemplate,
  name: 'LockTemplateConnection',
});

builder.prismaObjectFields(LockTemplate, (t) => ({
  owner: t.field({
    type: User,
    nullable: true,
    description: 'The user whom it belongs to.',
    ...toOne('User', 'ownerId'),
  }),
  sessions: t.connection(
    relatedListField(
      { model: 'LockTemplate', relation: 'sessions' },
      'LockSession',
      LockSession,
      "The viewer's lock sessions started from this template, newest first.",
    ),
    LockSessionConnection,
  ),
}));

/** The field of `Query` and `User`. */
export const lockTemplates = viewerListField(
  'LockTemplate',
  LockTemplate,
  "The viewer's lock templates, newest first.",
);

/** The field of `Query` and `User`. */
export const activeLockTemplate = {
  type: LockTemplate,
  nullable: true,
  description:
    'The template of the active lock session, null when no session is active or it has no template.',
  ...findVisible('LockTemplate', ({ id }) => ({ sessions: { some: { ownerId: id, isActive: true } } })),
} as const;

builder.queryFields((t) => ({
  lockTemplate: t.field(recordField('LockTemplate', LockTemplate, 'A lock template of the viewer.')),
  lockTemplates: t.connection(lockTemplates, LockTemplateConnection),
  activeLockTemplate: t.field(activeLockTemplate),
}));
