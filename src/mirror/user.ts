/** The user of the REST interface, as an upstream gives it. */

import { z } from 'zod';
import { count, int, name, recordId, text, username } from './fields.ts';

/** As `nullUntilKnown` of a kind. No upstream sends `scheduleType`. */
export const userNullUntilKnown = [
  'accountType',
  'subscriptionTier',
  'league',
  'rank',
  'totalPoints',
  'matchPoints',
  'profileImage',
  'profileDescription',
  'profileTitle',
  'dttTotalReps',
  'dttTotalSessions',
  'scheduleType',
];

export const user = z.object({
  id: recordId,
  username,
  accountType: name.nullish(),
  subscriptionTier: name.nullish(),
  league: count,
  rank: count,
  totalPoints: int.nullish(),
  matchPoints: int.nullish(),
  profileImage: text.nullish(),
  profileDescription: text.nullish(),
  profileTitle: text.nullish(),
  dttTotalReps: count,
  dttTotalSessions: count,
});
