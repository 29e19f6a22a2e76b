/** Training programs, called DTT templates or DTT settings. */

import type { ViewerRef } from '../../database/models.ts';
import { builder } from '../builder.ts';
import { addQueries, nullOnlyInMirror, orNull, relatedListField } from '../fields.ts';
import { children, derive, findVisible, hasRelated, requiredFirst, toOne } from '../loading/reads.ts';
import { DttSession } from './dttSession.ts';
import { User } from './user.ts';

interface OwnedRow {
  readonly ownerId: number | null;
}

/** The first condition makes the whole false rather than null for a template whose owner has no account here. */
const isOwn = ({ id }: ViewerRef) => ({ AND: [{ ownerId: { not: null } }, { ownerId: id }] });

export const DttTemplate = builder.prismaNode('DttTemplate', {
  description:
    "A training program (DTT template, also called DTT settings): one of the viewer's own, or imported.",
  id: { field: 'id' },
  fields: (t) => ({
    databaseId: t.exposeInt('id', { description: 'The integer id of the REST interface.' }),
    bubbleId: t.exposeString('bubbleId', { description: 'Public identifier.' }),
    ownerId: t.int({
      description:
        'Integer id of the user whom it belongs to. An imported template has it too, although its `owner` is null.',
      ...requiredFirst('ownerId', 'foreignOwnerId'),
    }),
    name: t.exposeString('name', { description: 'Name.' }),
    description: t.exposeString('description', nullOnlyInMirror('What the program is about.')),
    tagline: t.exposeString('tagline', nullOnlyInMirror('One line to recognise it by.')),
    message: t.exposeString('message', nullOnlyInMirror('What it says to the one who trains.')),
    isPublic: t.exposeBoolean('isPublic', { description: 'Whether other users may import it.' }),
    isActive: t.boolean({
      description: "Whether it is the viewer's active template. At most one is.",
      ...hasRelated('activeOf', ({ id }) => ({ id })),
    }),
    isImported: t.boolean({
      description: 'Whether the viewer has taken it over from another user, who owns it.',
      ...derive(['ownerId'], ({ ownerId }: OwnedRow, { id }) => ownerId !== id, {
        condition: (viewer) => ({ NOT: isOwn(viewer) }),
      }),
    }),
    viewerCanActivate: t.boolean({
      description: 'Whether `activateTemplate` takes it: the viewer owns it.',
      ...derive(['ownerId'], ({ ownerId }: OwnedRow, { id }) => ownerId === id, { condition: isOwn }),
    }),
    handsFreeMode: t.exposeBoolean('handsFreeMode', { description: 'Whether it runs without the hands.' }),
    targetDepth: t.exposeFloat('targetDepth', {
      description: 'Depth to reach, in millimetres or percent: the service has not settled which.',
    }),
    targetWindow: t.exposeFloat('targetWindow', {
      description: 'Tolerance around the target depth, in the unit of `targetDepth`.',
    }),
    toyId: t.exposeString('toyId', orNull('Identifier of the toy that it is made for.')),
    createdAt: t.expose('createdDate', { type: 'DateTime', description: 'When it was created.' }),
    updatedAt: t.expose('updatedAt', { type: 'DateTime', description: 'When it was last edited.' }),
  }),
});

builder.prismaObjectFields(DttTemplate, (t) => ({
  segments: t.field({
    type: [DttTemplateSegment],
    description: 'The segments, in program order.',
    ...children<'DttTemplateSegment'>('segments', { position: 'asc' }),
  }),
  owner: t.field({
    type: User,
    ...orNull(
      'The user whom it belongs to; null for an imported template, whose owner the viewer cannot see. `ownerId` says who it is.',
    ),
    ...toOne('User', 'ownerId'),
  }),
  sessions: t.connection(
    ...relatedListField(
      { model: 'DttTemplate', relation: 'sessions' },
      'DttSession',
      DttSession,
      "The viewer's sessions with this template, newest first.",
    ),
  ),
}));

const DttTemplateSegment = builder.prismaNode('DttTemplateSegment', {
  description: 'A segment of a training program.',
  id: { field: 'id' },
  fields: (t) => ({
    databaseId: t.exposeInt('id', { description: 'The integer id of the REST interface.' }),
    type: t.exposeString('type', {
      description: 'Kind of segment; `warmup`, `training`, `cooldown` and others have been seen.',
    }),
    durationSeconds: t.exposeInt('duration', { description: 'Length of one repetition, in seconds.' }),
    repeat: t.exposeInt('repeat', nullOnlyInMirror('How many times it is done.')),
    template: t.field({
      type: DttTemplate,
      ...orNull('The template that it is a part of.'),
      ...toOne('DttTemplate', 'templateId'),
    }),
  }),
});

addQueries('DttTemplate', DttTemplate, {
  one: 'A template of the viewer, owned or imported.',
  all: "The viewer's templates, owned and imported, newest first.",
});

builder.queryField('activeDttTemplate', (t) =>
  t.field({
    type: DttTemplate,
    ...orNull("The viewer's active template, null when none is."),
    ...findVisible('DttTemplate', ({ id }) => ({ activeOf: { some: { id } } })),
  }),
);
