/** What each user may have a limited number of. */

export interface PerUser {
  readonly most: number;
  /** Counts one more, if that is allowed, and returns whether it is. Whoever took one gives it back. */
  take(userId: number): boolean;
  give(userId: number): void;
}

export function createPerUser(most: number): PerUser {
  const counts = new Map<number, number>();
  return {
    most,
    take(userId) {
      const count = counts.get(userId) ?? 0;
      if (count >= most) return false;
      counts.set(userId, count + 1);
      return true;
    },
    give(userId) {
      const left = (counts.get(userId) ?? 1) - 1;
      if (left > 0) counts.set(userId, left);
      else counts.delete(userId);
    },
  };
}
