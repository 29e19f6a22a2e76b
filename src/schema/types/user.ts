/** Users. The viewer sees only themselves. */

import type { GraphQLResolveInfo } from 'graphql';
import { unauthenticated } from '../../errors.ts';
import { builder } from '../builder.ts';
import type { Context } from '../context.ts';
import { addQueries, nullOnlyInMirror, nullOnlyWithError, ofViewer, orNull } from '../fields.ts';
import { toOne } from '../loading/reads.ts';
import { readRow } from '../loading/rows.ts';
import { DttTemplate } from './dttTemplate.ts';

const ScheduleType = builder.enumType('ScheduleType', {
  description: 'How the next template is chosen.',
  values: {
    AUTO: { value: 'auto', description: 'By the service.' },
    WEEKLY: { value: 'weekly', description: 'By a weekly plan.' },
    SINGLE: { value: 'single', description: 'By the user: always the active template.' },
  } as const,
});

export const User = builder.prismaNode('User', {
  description: 'A user with their profile. The viewer sees themselves and nobody else.',
  id: { field: 'id' },
  fields: (t) => ({
    databaseId: t.exposeInt('id', { description: 'The integer id of the REST interface.' }),
    username: t.exposeString('username', { description: 'Unique name.' }),
    accountType: t.exposeString('accountType', nullOnlyInMirror('Kind of account, such as `user`.')),
    subscriptionTier: t.exposeString(
      'subscriptionTier',
      nullOnlyInMirror('Subscription, of which `ultra` is the highest.'),
    ),
    league: t.exposeInt('league', nullOnlyInMirror('League.')),
    rank: t.exposeInt('rank', nullOnlyInMirror('Rank in the league.')),
    totalPoints: t.exposeInt('totalPoints', nullOnlyInMirror('Points earned in all.')),
    matchPoints: t.exposeInt('matchPoints', nullOnlyInMirror('Points earned in matches.')),
    profileImage: t.exposeString('profileImage', nullOnlyInMirror('URL of the profile image.')),
    profileDescription: t.exposeString('profileDescription', nullOnlyInMirror('About the user.')),
    profileTitle: t.exposeString('profileTitle', nullOnlyInMirror('Title of the user.')),
    dttTotalReps: t.exposeInt('dttTotalReps', nullOnlyInMirror('Full cycles done in all training sessions.')),
    dttTotalSessions: t.exposeInt('dttTotalSessions', nullOnlyInMirror('Number of training sessions.')),
    scheduleType: t.expose('scheduleType', {
      type: ScheduleType,
      ...nullOnlyInMirror('How the next template is chosen.'),
      description:
        'How the next template is chosen; null in a mirror until an activation, since the upstream does not tell it.',
    }),
  }),
});

builder.prismaObjectFields(User, (t) => ({
  activeDttTemplate: t.field({
    type: DttTemplate,
    ...orNull('The active template, null when none is.'),
    ...toOne('DttTemplate', 'activeTemplateId'),
  }),
  ...Object.fromEntries([...ofViewer.fields].map(([name, options]) => [name, t.field(options)])),
  ...Object.fromEntries([...ofViewer.lists].map(([name, list]) => [name, t.connection(...list)])),
}));

/** The field of records with an owner. */
export const ownerField = {
  type: User,
  ...orNull('The user whom it belongs to.'),
  ...toOne('User', 'ownerId'),
} as const;

/** The field of `Query` and of the payload of the mutation. */
export const viewerField = {
  type: User,
  nullable: true,
  description: 'The user whose token came with the request.',
  extensions: nullOnlyWithError,
  resolve: async (_parent: unknown, _args: unknown, context: Context, info: GraphQLResolveInfo) => {
    const viewer = await readRow('User', 'one', () => ({}), {}, context, info);
    // The user was deleted after the request was authenticated, together with the token.
    if (!viewer) throw unauthenticated('invalid');
    return viewer;
  },
} as const;

builder.queryField('viewer', (t) => t.field(viewerField));

addQueries('User', User, {
  one: 'The viewer, if the id is theirs.',
  all: 'The users whom the viewer may see: the viewer alone.',
});
