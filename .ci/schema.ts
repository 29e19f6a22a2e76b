/**
 * Names the changes of schema.graphql that break its clients: `npm run check:schema` against the merge base with main, on main
 * against the parent commit, `npm run check:schema -- <commit>` against that commit. It keeps docs/stability.md: what is deprecated
 * may go on the day that its reason names. A commit allows any other change by a line of its message, `Breaking-Change: ` and what
 * was printed, as long as there is no release of the same major version.
 */

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import {
  buildASTSchema,
  type ConstDirectiveNode,
  findBreakingChanges,
  findDangerousChanges,
  parse,
  print,
  visit,
} from 'graphql';

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

/** The day on which what a node defines may go, as its reason names it; undefined for what is not deprecated. */
function endOf(directives: readonly ConstDirectiveNode[] | undefined): string | undefined {
  const deprecated = directives?.find(({ name }) => name.value === 'deprecated');
  return deprecated && (/\d{4}-\d\d-\d\d/.exec(print(deprecated))?.[0] ?? 'never');
}

const today = new Date().toISOString().slice(0, 10);
const kept = visit(parse(before), {
  enter: (node) => ('directives' in node && (endOf(node.directives) ?? 'never') <= today ? null : undefined),
});
const current = parse(readFileSync(file, 'utf8'));
const endless: string[] = [];
visit(current, {
  enter(node) {
    if ('name' in node && 'directives' in node && endOf(node.directives) === 'never')
      endless.push(`${node.name?.value} is deprecated without a day on which it may go.`);
  },
});

const old = buildASTSchema(kept);
const now = buildASTSchema(current);
const release = git('describe', '--tags', '--abbrev=0', '--match', 'v*', since);
const major = (version: string) => version.replace(/^v/, '').split('.')[0];
const isPromised =
  release !== undefined && major(release) === major(JSON.parse(readFileSync('package.json', 'utf8')).version);
const trailers = git('log', `${since}..HEAD`, '--format=%(trailers:key=Breaking-Change,valueonly)');
const allowed = isPromised ? [] : trailers?.split('\n');
const breaking = findBreakingChanges(old, now).map(({ description }) => ({
  description,
  isAllowed: allowed?.includes(description),
}));

process.stdout.write(`${file} since ${git('rev-parse', '--short', since)}:\n`);
for (const { description, isAllowed } of breaking)
  process.stdout.write(`  ${isAllowed ? 'breaking, allowed' : 'breaking'}: ${description}\n`);
for (const { description } of findDangerousChanges(old, now))
  process.stdout.write(`  for clients to know: ${description}\n`);
for (const problem of endless) process.stdout.write(`  ${problem}\n`);
const refused = breaking.filter(({ isAllowed }) => !isAllowed);
process.stdout.write(
  `${refused.length === 0 ? 'No' : refused.length} breaking changes that no commit allows.\n`,
);
process.exitCode = refused.length + endless.length === 0 ? 0 : 1;
