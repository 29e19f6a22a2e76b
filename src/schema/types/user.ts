/** Users. The viewer sees only themselves. */

import type { GraphQLResolveInfo } from 'graphql';
import { unauthenticated } from '../../errors.ts';
import { builder } from '../builder.ts';
import type { Context } from '../context.ts';
import { listedRecord, nullOnlyInMirror, nullOnlyWithError, toOne } from '../fields.ts';
import { readRow } from '../loading/rows.ts';

const ScheduleType = builder.enumType('ScheduleType', {
  description: 'How the next template is chosen.',
  values: {
    AUTO: { value: 'auto', description: 'By the service.' },
    WEEKLY: { value: 'weekly', description: 'By a weekly plan.' },
    SINGLE: { value: 'single', description: 'By the user: always the active template.' },
  } as const,
});

export const User = listedRecord('User', {
  description: 'A user with their profile. The viewer sees themselves and nobody else.',
  one: 'The viewer, if the id is theirs.',
  all: 'The users whom the viewer may see: the viewer alone.',
  columns: {
    username: 'Unique name.',
    accountType: nullOnlyInMirror('Kind of account, such as `user`.'),
    subscriptionTier: nullOnlyInMirror('Subscription, of which `ultra` is the highest.'),
    league: nullOnlyInMirror('League.'),
    rank: nullOnlyInMirror('Rank in the league.'),
    totalPoints: nullOnlyInMirror('Points earned in all.'),
    matchPoints: nullOnlyInMirror('Points earned in matches.'),
    profileImage: nullOnlyInMirror('URL of the profile image.'),
    profileDescription: nullOnlyInMirror('About the user.'),
    profileTitle: nullOnlyInMirror('Title of the user.'),
    dttTotalReps: nullOnlyInMirror('Full cycles done in all training sessions.'),
    dttTotalSessions: nullOnlyInMirror('Number of training sessions.'),
    scheduleType: {
      type: ScheduleType,
      ...nullOnlyInMirror('How the next template is chosen.'),
      description:
        'How the next template is chosen; null in a mirror until an activation, since the upstream does not tell it.',
    },
  },
  fields: (t) => ({
    activeDttTemplate: t.field({
      description: 'The active template, null when none is.',
      ...toOne('DttTemplate', 'activeTemplateId'),
    }),
  }),
});

/** The field of records with an owner. */
export const ownerField = {
  description: 'The user whom it belongs to.',
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
