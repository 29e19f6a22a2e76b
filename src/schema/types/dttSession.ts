/** Training sessions. */

import { addViewerField, listedRecord } from '../fields.ts';
import { children, findNewest, firstNonNull, requiredFirst, toOne } from '../loading/reads.ts';
import type { RecordRef } from '../loading/rows.ts';
import { DttDevice } from './dttDevice.ts';
import { DttTemplate } from './dttTemplate.ts';
import { TrainerSegment } from './trainerSegment.ts';
import { ownerField } from './user.ts';

export const DttSession: RecordRef<'DttSession'> = listedRecord('DttSession', {
  description: 'A training session on a trainer device (DTT session).',
  one: 'A training session of the viewer.',
  all: "The viewer's training sessions, newest first.",
  columns: {
    bubbleId: 'Public identifier.',
    ownerId: 'Integer id of the user whom it belongs to.',
    name: 'Name.',
    passed: 'Whether it was passed overall.',
    createdAt: 'When it took place: the one time that the service has of a session.',
  },
  fields: (t) => ({
    segments: t.field({
      description: 'The results per segment, in order.',
      ...children(TrainerSegment, 'segments', { order: 'asc' }),
    }),
    owner: t.field(ownerField),
    trainerId: t.int({
      description: 'Integer id of the trainer device.',
      ...requiredFirst('trainerId', 'goneTrainerId'),
    }),
    trainer: t.field({
      description: 'The trainer device; null when it is no longer one of the viewer’s.',
      ...toOne(DttDevice, 'trainerId'),
    }),
    templateId: t.int({
      description: 'Integer id of the template that was used, if any.',
      ...firstNonNull('templateId', 'goneTemplateId'),
    }),
    template: t.field({
      description:
        'The template that was used; null when there was none, or it is no longer one of the viewer’s.',
      ...toOne(DttTemplate, 'templateId'),
    }),
  }),
});

addViewerField('latestDttSession', {
  description: "The viewer's newest training session, null when there is none.",
  ...findNewest(DttSession),
});
