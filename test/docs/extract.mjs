/**
 * Writes the files that docs/clients.md shows into the current folder, so that the tests use the very text of the page. The
 * arguments name the projects whose files are written.
 */

import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const page = readFileSync(join(root, 'docs/clients.md'), 'utf8');
const output = join('generated', 'docs');
const wanted = process.argv.slice(2);
/** The sections whose files form a project of their own. The files of all others form one project. */
const projects = { 'gql.tada': 'tada', Relay: 'relay' };

rmSync(output, { recursive: true, force: true });
for (const section of page.split(/^## /m)) {
  const [heading] = section.split('\n', 1);
  const project = projects[heading] ?? 'app';
  if (!wanted.includes(project)) continue;
  for (const [, name, text] of section.matchAll(/^```\w+\n\/\/ (\S+\.\w+)\n(.*?)^```$/gms)) {
    const file = join(output, project, name);
    mkdirSync(dirname(file), { recursive: true });
    // The schema is that of this commit.
    writeFileSync(file, text.replace('http://localhost:4000/schema.graphql', 'schema.graphql'));
    copyFileSync(join(root, 'schema.graphql'), join(output, project, 'schema.graphql'));
  }
}
