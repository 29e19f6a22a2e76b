/** Training programs, called DTT templates or DTT settings. */

import type { ViewerRef } from '../../database/models.ts';
import { builder } from '../builder.ts';
import {
  children,
  derive,
  findVisible,
  hasRelated,
  listBelow,
  listedRecord,
  nullIfUnknown,
  record,
  requiredFirst,
  toOne,
} from '../fields.ts';

interface OwnedRow {
  readonly ownerId: number | null;
}

/** The first condition makes the whole false rather than null for a template whose owner has no account here. */
const isOwn = ({ id }: ViewerRef) => ({ AND: [{ ownerId: { not: null } }, { ownerId: id }] });

listedRecord('DttTemplate', {
  description: 'A training program (DTT template, also called DTT settings): one of your own, or imported.',
  one: 'One of your templates, owned or imported.',
  all: 'Your templates, owned and imported, newest first.',
  columns: {
    bubbleId: 'Public identifier.',
    name: 'Name.',
    description: nullIfUnknown('What the program is about.'),
    tagline: nullIfUnknown('One line to recognise it by.'),
    message: nullIfUnknown('Message shown to the user.'),
    isPublic: 'Whether other users may import it.',
    handsFreeMode: 'Whether it is hands-free.',
    targetDepth: 'Depth to reach, in millimetres or percent: the service has not settled which.',
    targetWindow: 'Tolerance around the target depth, in the unit of `targetDepth`.',
    toyId: 'Identifier of the toy that it is made for.',
    createdAt: { column: 'createdDate', description: 'When it was created.' },
    updatedAt: 'When it was last edited.',
  },
  fields: (t) => ({
    ownerId: t.int({
      description: 'Integer id of its owner. An imported template has it too, although its `owner` is null.',
      ...requiredFirst('ownerId', 'foreignOwnerId'),
    }),
    owner: t.field({
      description:
        'Its owner; null for an imported template, whose owner you cannot see. `ownerId` has their id.',
      ...toOne('User', 'ownerId'),
    }),
    isActive: t.boolean({
      description: 'Whether it is your active template. At most one is.',
      ...hasRelated('activeOf', ({ id }) => ({ id })),
    }),
    isImported: t.boolean({
      description: 'Whether you have imported it from another user, who owns it.',
      ...derive(['ownerId'], ({ ownerId }: OwnedRow, { id }) => ownerId !== id, {
        condition: (viewer) => ({ NOT: isOwn(viewer) }),
      }),
    }),
    viewerCanActivate: t.boolean({
      description: 'Whether `activateTemplate` takes it: you own it.',
      ...derive(['ownerId'], ({ ownerId }: OwnedRow, { id }) => ownerId === id, { condition: isOwn }),
    }),
    segments: t.field({
      description: 'The segments, in program order.',
      ...children('DttTemplateSegment', 'segments', { position: 'asc' }),
    }),
    sessions: t.connection(
      ...listBelow(
        'DttTemplate',
        'sessions',
        'DttSession',
        'Your sessions with this template, newest first.',
      ),
    ),
  }),
});

record('DttTemplateSegment', {
  description: 'A segment of a training program.',
  columns: {
    type: 'Kind of segment; `warmup`, `training`, `cooldown` and others have been seen.',
    durationSeconds: { column: 'duration', description: 'Length of one repetition, in seconds.' },
    repeat: nullIfUnknown('How many times it is done.'),
  },
  fields: (t) => ({
    template: t.field({
      description: 'The template it is part of.',
      ...toOne('DttTemplate', 'templateId'),
    }),
  }),
});

builder.queryField('activeDttTemplate', (t) =>
  t.field({
    description: 'Your active template, null when none is.',
    ...findVisible('DttTemplate', ({ id }) => ({ activeOf: { some: { id } } })),
  }),
);
