/** What each user may have a limited number of. */

export interface UserQuota {
  readonly limit: number;
  /** Counts one more, if that is allowed, and returns whether it is. Whoever took one gives it back. */
  acquire(userId: number): boolean;
  release(userId: number): void;
}

export function createUserQuota(limit: number): UserQuota {
  const counts = new Map<number, number>();
  return {
    limit,
    acquire(userId) {
      const count = counts.get(userId) ?? 0;
      if (count >= limit) return false;
      counts.set(userId, count + 1);
      return true;
    },
    release(userId) {
      const left = (counts.get(userId) ?? 1) - 1;
      if (left > 0) counts.set(userId, left);
      else counts.delete(userId);
    },
  };
}
