/** Prints how large the project is: `npm run check` shows it to everybody who adds to it. */

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { settings } from '../src/config/config.ts';

/** All files of the project but those that are generated, which git ignores. */
const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
  encoding: 'utf8',
})
  .split('\n')
  .filter(existsSync);

const pages = files.filter((name) => /^docs\/[^/]+\.md$/.test(name));

const totals = {
  'lines of TypeScript in src': linesOf(/^src\/.*\.ts$/),
  'lines of TypeScript in test': linesOf(/^test\/.*\.tsx?$/),
  settings: Object.keys(settings).length,
  'pages in docs, without the decisions': pages.length,
  'lines of CHANGELOG.md': linesOf(/^CHANGELOG\.md$/),
};

function linesOf(pattern: RegExp): number {
  const texts = files.filter((name) => pattern.test(name)).map((name) => readFileSync(name, 'utf8'));
  return texts.reduce((sum, text) => sum + text.split('\n').length - 1, 0);
}

for (const [what, total] of Object.entries(totals))
  process.stdout.write(`${total.toLocaleString('en').padStart(8)}  ${what}\n`);
