/**
 * Which Node the program needs. Loaded before it is known whether this one will do, so it imports nothing, and is written
 * for older ones as well.
 */

/** The oldest of each line that will do, and of all later lines any: as `engines` in package.json says, and Prisma asks. */
export const oldestNode = '20.19, 22.12, 24';

/** @param version such as `20.19.0`. */
export function isTooOld(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  let newestLine = 0;
  for (const oldest of oldestNode.split(', ')) {
    const [line = 0, from = 0] = oldest.split('.').map(Number);
    if (major === line) return minor < from;
    newestLine = line;
  }
  return major < newestLine;
}
