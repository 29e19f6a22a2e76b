/** The user of the REST interface, as an upstream gives it. */

import { z } from 'zod';
import { count, int, known, name, recordId, text, username } from './fields.ts';

/** As `nullUntilKnown` of a kind. When the next template is chosen, no upstream tells. */
export const userNullUntilKnown = [
  'accountType',
  'subscriptionTier',
  'league',
  'rank',
  'totalPoints',
  'matchPoints',
  'dttTotalReps',
  'dttTotalSessions',
  'scheduleType',
];

export const user = z.object({
  id: recordId,
  username,
  accountType: known(name),
  subscriptionTier: known(name),
  league: known(count),
  rank: known(count),
  totalPoints: known(int),
  matchPoints: known(int),
  profileImage: text.nullish(),
  profileDescription: text.nullish(),
  profileTitle: text.nullish(),
  dttTotalReps: known(count),
  dttTotalSessions: known(count),
});
