/** Counts what each user has open, such as subscriptions, up to a limit. */

export interface UserQuota {
  readonly limit: number;
  /**
   * Counts one more, unless the user has reached the limit. Returns whether it counted; each that it counted must be
   * released.
   */
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
