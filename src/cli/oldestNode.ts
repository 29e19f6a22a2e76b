/**
 * The versions of Node that the program needs. This module runs before the version is checked, so it imports nothing and uses
 * no syntax that an old Node lacks.
 */

/** The oldest version of each release line, and any later line, as in `engines` of package.json. Prisma needs the same. */
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
