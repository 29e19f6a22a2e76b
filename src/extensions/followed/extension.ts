/** Every GET of the REST API can be followed: as a stream of events, or by a request that waits for a change. */

import type { Extension } from '../../extensionPoints.ts';
import { followerOf } from './follow.ts';

export const followed: Extension = {
  settings: {},
  open: async () => ({ createFollower: (pipeline) => (read) => followerOf(pipeline, read) }),
};
