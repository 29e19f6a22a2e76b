/**
 * Which Node the program needs. Loaded before it is known whether this one will do, so it imports nothing, and is written
 * for older ones as well.
 */

/** As `engines` in package.json says. */
export const oldestNode = '20.19';

/** @param version such as `20.19.0`. */
export function isTooOld(version: string): boolean {
  const [oldestMajor = 0, oldestMinor = 0] = oldestNode.split('.').map(Number);
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major < oldestMajor || (major === oldestMajor && minor < oldestMinor);
}
