/**
 * Names the changes of schema.graphql that break its clients: `npm run check:schema` since the main line was left, or
 * since the commit before when this is it, `npm run check:schema -- <commit>` since that commit. A commit allows one by
 * a line of its message: `Breaking-Change: ` and what was printed.
 */

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { buildSchema, findBreakingChanges, findDangerousChanges } from 'graphql';

const file = 'schema.graphql';

/** What git says, or undefined where it refuses. */
function git(...args: string[]): string | undefined {
  try {
    return execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return undefined;
  }
}

function base(): string | undefined {
  const left = git('merge-base', 'HEAD', 'origin/main');
  return left && left !== git('rev-parse', 'HEAD') ? left : git('rev-parse', '--verify', '--quiet', 'HEAD^');
}

const since = process.argv[2] ?? base();
const before = since && git('show', `${since}:${file}`);
if (before === undefined) {
  process.stdout.write(`There is no ${file} to compare with${since ? ` at ${since}` : ''}.\n`);
  process.exit(process.argv[2] ? 2 : 0);
}

const old = buildSchema(before);
const now = buildSchema(readFileSync(file, 'utf8'));
const allowed = git('log', `${since}..HEAD`, '--format=%(trailers:key=Breaking-Change,valueonly)')?.split(
  '\n',
);
const breaking = findBreakingChanges(old, now).map(({ description }) => ({
  description,
  isAllowed: allowed?.includes(description),
}));

process.stdout.write(`${file} since ${git('rev-parse', '--short', since)}:\n`);
for (const { description, isAllowed } of breaking)
  process.stdout.write(`  ${isAllowed ? 'breaking, allowed' : 'breaking'}: ${description}\n`);
for (const { description } of findDangerousChanges(old, now))
  process.stdout.write(`  for clients to know: ${description}\n`);
const refused = breaking.filter(({ isAllowed }) => !isAllowed);
process.stdout.write(
  `${refused.length === 0 ? 'No' : refused.length} breaking changes that no commit allows.\n`,
);
process.exitCode = refused.length === 0 ? 0 : 1;
