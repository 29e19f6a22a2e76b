/** Changes that were announced, but that database snapshots may not show yet. */

import type { Change } from './changeFeed.ts';

export interface UnseenChanges {
  /** Adds a change. The returned function removes it. */
  add(change: Change): () => void;
  /** Whether a change of the user's, or one that concerns all users, is among them. */
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
