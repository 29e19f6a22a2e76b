/** Changes that were announced, and that snapshots may not see yet: whose data may be older than what was heard. */

import type { Change } from './changeFeed.ts';

export interface UnseenChanges {
  /** Takes note of a change, until the returned function is called. */
  add(change: Change): () => void;
  /** Whether a change of the user's, or of everybody's, is among them. */
  affects(userId: number): boolean;
}

export function createUnseenChanges(): UnseenChanges {
  const users = new Map<number, number>();
  let everybody = 0;
  return {
    add(change) {
      if (change.kind === 'all') {
        everybody++;
        return () => {
          everybody--;
        };
      }
      const { userId } = change;
      users.set(userId, (users.get(userId) ?? 0) + 1);
      return () => {
        const left = (users.get(userId) ?? 1) - 1;
        if (left > 0) users.set(userId, left);
        else users.delete(userId);
      };
    },
    affects: (userId) => everybody > 0 || users.has(userId),
  };
}
