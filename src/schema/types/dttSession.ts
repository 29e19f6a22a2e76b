/** Training sessions. */

import { builder } from '../builder.ts';
import { addQueries, addViewerField, orNull } from '../fields.ts';
import { children, findNewest, firstNonNull, requiredFirst, toOne } from '../loading/reads.ts';
import { DttDevice } from './dttDevice.ts';
import { DttTemplate } from './dttTemplate.ts';
import { TrainerSegment } from './trainerSegment.ts';
import { ownerField } from './user.ts';

export const DttSession = builder.prismaNode('DttSession', {
  description: 'A training session on a trainer device (DTT session).',
  id: { field: 'id' },
  fields: (t) => ({
    databaseId: t.exposeInt('id', { description: 'The integer id of the REST interface.' }),
    bubbleId: t.exposeString('bubbleId', { description: 'Public identifier.' }),
    ownerId: t.exposeInt('ownerId', { description: 'Integer id of the user whom it belongs to.' }),
    name: t.exposeString('name', orNull('Name.')),
    passed: t.exposeBoolean('passed', orNull('Whether it was passed overall.')),
    createdAt: t.expose('createdAt', {
      type: 'DateTime',
      description: 'When it took place: the one time that the service has of a session.',
    }),
    trainerId: t.int({
      description: 'Integer id of the trainer device.',
      ...requiredFirst('trainerId', 'goneTrainerId'),
    }),
    templateId: t.int({
      ...orNull('Integer id of the template that was used, if any.'),
      ...firstNonNull('templateId', 'goneTemplateId'),
    }),
  }),
});

builder.prismaObjectFields(DttSession, (t) => ({
  segments: t.field({
    type: [TrainerSegment],
    description: 'The results per segment, in order.',
    ...children<'TrainerSegment'>('segments', { order: 'asc' }),
  }),
  owner: t.field(ownerField),
  trainer: t.field({
    type: DttDevice,
    ...orNull('The trainer device; null when it is no longer one of the viewer’s.'),
    ...toOne('DttDevice', 'trainerId'),
  }),
  template: t.field({
    type: DttTemplate,
    ...orNull(
      'The template that was used; null when there was none, or it is no longer one of the viewer’s.',
    ),
    ...toOne('DttTemplate', 'templateId'),
  }),
}));

addQueries('DttSession', DttSession, {
  one: 'A training session of the viewer.',
  all: "The viewer's training sessions, newest first.",
});

addViewerField(
  'latestDttSession',
  DttSession,
  "The viewer's newest training session, null when there is none.",
  findNewest('DttSession'),
);
