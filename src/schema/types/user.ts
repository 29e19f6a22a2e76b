/** Users. The viewer sees only themselves. */

import type { GraphQLResolveInfo } from 'graphql';
import { unauthenticated } from '../../errors.ts';
import { builder } from '../builder.ts';
import type { Context } from '../context.ts';
import { addQuery, nullIfUnknown, nullOnlyWithError, record, toOne } from '../fields.ts';
import { readRow } from '../loading/rows.ts';

const ScheduleType = builder.enumType('ScheduleType', {
  description: 'How the next template is chosen.',
  values: {
    AUTO: { value: 'auto', description: 'By the service.' },
    WEEKLY: { value: 'weekly', description: 'By a weekly plan.' },
    SINGLE: { value: 'single', description: 'By the user: always the active template.' },
  } as const,
});

export const User = record('User', {
  description: 'A user with their profile. You see yourself and nobody else.',
  columns: {
    username: 'Unique name.',
    accountType: nullIfUnknown('Kind of account, such as `user`.'),
    subscriptionTier: nullIfUnknown('Subscription, of which `ultra` is the highest.'),
    league: nullIfUnknown('League.'),
    rank: nullIfUnknown('Rank in the league.'),
    totalPoints: nullIfUnknown('Points earned in all.'),
    matchPoints: nullIfUnknown('Points earned in matches.'),
    profileImage: nullIfUnknown('URL of the profile image.'),
    profileDescription: nullIfUnknown('About the user.'),
    profileTitle: nullIfUnknown('Title of the user.'),
    dttTotalReps: nullIfUnknown('Full cycles done in all training sessions.'),
    dttTotalSessions: nullIfUnknown('Number of training sessions.'),
    scheduleType: { type: ScheduleType, ...nullIfUnknown('How the next template is chosen.') },
  },
  fields: (t) => ({
    activeDttTemplate: t.field({
      description: 'The active template, null when none is.',
      ...toOne('DttTemplate', 'activeTemplateId'),
    }),
  }),
});

addQuery('User', 'You, if the id is yours.');

/** The field of records with an owner. */
export const ownerField = {
  description: 'Its owner.',
  ...toOne('User', 'ownerId'),
} as const;

/** The field of `Query` and of the payload of the mutation. */
export const viewerField = {
  type: User,
  nullable: true,
  description: 'The user whose token came with the request.',
  extensions: nullOnlyWithError,
  resolve: async (_parent: unknown, _args: unknown, context: Context, info: GraphQLResolveInfo) => {
    const viewer = await readRow('User', { variant: 'one', rows: () => ({}) }, { context, info });
    // The user was deleted after the request was authenticated, together with the token.
    if (!viewer) throw unauthenticated('invalid');
    return viewer;
  },
} as const;

builder.queryField('viewer', (t) => t.field(viewerField));
