/** Training programs, called DTT templates or DTT settings, and their activation. */

import { clientError, messages } from '../../errors.ts';
import { builder } from '../builder.ts';
import type { Context } from '../context.ts';
import { recordArguments, recordField, relatedListField, viewerListField } from '../fields.ts';
import {
  children,
  findVisible,
  hasRelated,
  onEachChange,
  oneOf,
  readVisible,
  toOne,
} from '../loading/reads.ts';
import { DttSession, DttSessionConnection } from './dttSession.ts';
import { User } from './user.ts';

export const DttTemplate = builder.prismaNode('DttTemplate', {
  description:
    "A training program (DTT template, also called DTT settings): one of the viewer's own, or imported.",
  id: { field: 'id' },
  fields: (t) => ({
    databaseId: t.exposeInt('id', { description: 'The integer id of the REST interface.' }),
    bubbleId: t.exposeString('bubbleId', { description: 'Public identifier.' }),
    ownerId: t.int({
      description: 'Integer id of the user whom it belongs to.',
      ...oneOf('ownerId', 'foreignOwnerId'),
    }),
    name: t.exposeString('name', { description: 'Name.' }),
    description: t.exposeString('description', { nullable: true, description: 'What the program is about.' }),
    tagline: t.exposeString('tagline', { nullable: true, description: 'One line to recognise it by.' }),
    message: t.exposeString('message', {
      nullable: true,
      description: 'What it says to the one who trains.',
    }),
    isPublic: t.exposeBoolean('isPublic', { description: 'Whether other users may import it.' }),
    isActive: t.boolean({
      description: "Whether it is the viewer's active template. At most one is.",
      ...hasRelated('activeOf', ({ id }) => ({ id })),
    }),
    handsFreeMode: t.exposeBoolean('handsFreeMode', { description: 'Whether it runs without the hands.' }),
    targetDepth: t.exposeFloat('targetDepth', {
      description: 'Depth to reach, in millimetres or percent: the service has not settled which.',
    }),
    targetWindow: t.exposeFloat('targetWindow', {
      description: 'Tolerance around the target depth, in the unit of `targetDepth`.',
    }),
    toyId: t.exposeString('toyId', {
      nullable: true,
      description: 'Identifier of the toy that it is made for.',
    }),
    createdDate: t.expose('createdDate', { type: 'DateTime', description: 'When it was created.' }),
    updatedAt: t.expose('updatedAt', { type: 'DateTime', description: 'When it was last edited.' }),
  }),
});

export const DttTemplateConnection = builder.connectionObject({
  type: DttTemplate,
  name: 'DttTemplateConnection',
});

builder.prismaObjectFields(DttTemplate, (t) => ({
  segments: t.field({
    type: [DttTemplateSegment],
    description: 'The segments, in program order.',
    ...children<'DttTemplateSegment'>('segments', { position: 'asc' }),
  }),
  owner: t.field({
    type: User,
    nullable: true,
    description:
      'The user whom it belongs to; null for an imported template, whose owner the viewer cannot see.',
    ...toOne('User', 'ownerId'),
  }),
  sessions: t.connection(
    relatedListField(
      { model: 'DttTemplate', relation: 'sessions' },
      'DttSession',
      DttSession,
      "The viewer's sessions with this template, newest first.",
    ),
    DttSessionConnection,
  ),
}));

const DttTemplateSegment = builder.prismaNode('DttTemplateSegment', {
  description: 'A segment of a training program.',
  id: { field: 'id' },
  fields: (t) => ({
    databaseId: t.exposeInt('id', { description: 'The integer id of the REST interface.' }),
    type: t.exposeString('type', { description: 'Kind of segment, such as `warmup` or `training`.' }),
    duration: t.exposeInt('duration', { description: 'Length of one repetition, in seconds.' }),
    repeat: t.exposeInt('repeat', {
      nullable: true,
      description: 'How many times it is done, null where a mirror does not know it.',
    }),
  }),
});

const activeDttTemplate = {
  type: DttTemplate,
  nullable: true,
  description: "The viewer's active template, null when none is.",
  resolve: findVisible('DttTemplate', ({ id }) => ({ activeOf: { some: { id } } })),
} as const;

builder.queryFields((t) => ({
  dttTemplate: t.field(
    recordField('DttTemplate', DttTemplate, 'A template of the viewer, owned or imported.'),
  ),
  dttTemplates: t.connection(
    viewerListField('DttTemplate', DttTemplate, "The viewer's templates, owned and imported, newest first."),
    DttTemplateConnection,
  ),
  activeDttTemplate: t.field(activeDttTemplate),
}));

builder.subscriptionFields((t) => ({
  activeDttTemplate: t.field({
    ...activeDttTemplate,
    ...onEachChange(activeDttTemplate.resolve),
  }),
}));

interface Activation {
  templateId: number;
  scheduleTypeChanged: boolean;
}

const ActivateTemplatePayload = builder.objectRef<Activation>('ActivateTemplatePayload').implement({
  description: 'What the activation of a template led to.',
  fields: (t) => ({
    template: t.field({
      type: DttTemplate,
      nullable: true,
      description: 'The template, now active. Null only if it was deleted in the meantime.',
      resolve: ({ templateId }, _args, context, info) =>
        readVisible('DttTemplate', { id: templateId }, context, info),
    }),
    scheduleTypeChanged: t.exposeBoolean('scheduleTypeChanged', {
      description: 'Whether the schedule type was `auto` or `weekly` and is now `single`.',
    }),
  }),
});

builder.mutationField('activateTemplate', (t) =>
  t.field({
    type: ActivateTemplatePayload,
    args: recordArguments,
    description:
      'Makes a template that the viewer owns the active one, in place of any other, and turns the schedule type ' +
      '`auto` or `weekly` into `single`. Fails with NOT_FOUND for a template that is missing or not owned.',
    resolve: async (_root, { databaseId }, context) => {
      const upstream = await context.upstream?.activate(context.viewer, databaseId);
      const changedHere = await activate(context, databaseId);
      // What an earlier field of this operation read is not how things are now.
      context.loaders.clear();
      // The schedule type of a mirrored account is known where it lives.
      return { templateId: databaseId, scheduleTypeChanged: upstream?.scheduleTypeChanged ?? changedHere };
    },
  }),
);

/**
 * Points the viewer at the template, in one statement (docs/rest.md#activation). The template's row is locked first: an
 * activation that meets a deletion waits for it, and then finds no template. The lock on the viewer's row makes
 * concurrent activations take turns, so that each sees the schedule type that the one before it left.
 * @returns whether the schedule type changed.
 * @throws NOT_FOUND for a template that is missing, or that the viewer does not own.
 */
async function activate({ sql, viewer }: Context, templateId: number): Promise<boolean> {
  const [activation] = await sql.write<{ scheduleTypeChanged: boolean }>(
    `    WITH owned AS (SELECT FROM "DttTemplate" WHERE id = $2 AND "ownerId" = $1 FOR KEY SHARE),
      before AS (SELECT id, "scheduleType" FROM "User" WHERE id = $1 AND EXISTS (SELECT FROM owned) FOR UPDATE)
    UPDATE "User"
    SET "activeTemplateId" = $2, "scheduleType" = 'single'
    FROM before
    WHERE "User".id = before.id
    RETURNING coalesce(before."scheduleType" <> 'single', false) AS "scheduleTypeChanged"`,
    [viewer.id, templateId],
  );
  if (!activation) throw clientError('NOT_FOUND', messages.templateNotOwned);
  return activation.scheduleTypeChanged;
}
