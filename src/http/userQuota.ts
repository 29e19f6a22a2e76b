/** Counts what each user has open, such as subscriptions, up to a limit. */

export type UserQuota = ReturnType<typeof createUserQuota>;

export function createUserQuota(limit: number) {
  const counts = new Map<number, number>();
  return {
    limit,
    /** Counts one more, unless the user has reached the limit. @returns whether it did: each that it counted has to be released. */
    acquire(userId: number): boolean {
      const count = counts.get(userId) ?? 0;
      if (count >= limit) return false;
      counts.set(userId, count + 1);
      return true;
    },
    release(userId: number): void {
      const left = (counts.get(userId) ?? 1) - 1;
      if (left > 0) counts.set(userId, left);
      else counts.delete(userId);
    },
  };
}
