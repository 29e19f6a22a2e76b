/** Prints how large the project is: `npm run check` shows it to everybody who adds to it. */

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { settingsOf } from '../src/config/config.ts';
import { extensions } from '../src/extensions/extensions.ts';

/** All files of the project but those that are generated, which git ignores. */
const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
  encoding: 'utf8',
})
  .split('\n')
  .filter(existsSync);

const pages = files.filter((name) => /^docs\/[^/]+\.md$/.test(name));

/** The folders of the extensions. */
const folders = [...new Set(files.flatMap((name) => /^src\/extensions\/(\w+)\//.exec(name)?.[1] ?? []))];

const totals = {
  'lines of TypeScript in src': linesOf(/^src\/.*\.ts$/),
  'of these in the core': linesOf(/^src\/(?!extensions\/\w+\/).*\.ts$/),
  ...Object.fromEntries(
    folders.map((name) => [
      `in the extension ${name}`,
      linesOf(new RegExp(`^src/extensions/${name}/.*\\.ts$`)),
    ]),
  ),
  'lines of TypeScript in test': linesOf(/^test\/.*\.tsx?$/),
  settings: Object.keys(settingsOf(extensions)).length,
  'pages in docs, without the decisions': pages.length,
  'lines of CHANGELOG.md': linesOf(/^CHANGELOG\.md$/),
};

function linesOf(pattern: RegExp): number {
  const texts = files.filter((name) => pattern.test(name)).map((name) => readFileSync(name, 'utf8'));
  return texts.reduce((sum, text) => sum + text.split('\n').length - 1, 0);
}

for (const [what, total] of Object.entries(totals))
  process.stdout.write(`${total.toLocaleString('en').padStart(8)}  ${what}\n`);
