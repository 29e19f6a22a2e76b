/**
 * Writes the files that docs/clients.md shows, so that what is tested is what the page shows: those of the projects
 * that are named, into the folder that it is run in.
 */

import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const page = readFileSync(join(root, 'docs/clients.md'), 'utf8');
const output = join('generated', 'docs');
const wanted = process.argv.slice(2);
/** Sections that are a project of their own. All others share one. */
const projects = { 'gql.tada': 'tada', Relay: 'relay' };

rmSync(output, { recursive: true, force: true });
for (const section of page.split(/^## /m)) {
  const [heading] = section.split('\n', 1);
  const project = projects[heading] ?? 'app';
  if (!wanted.includes(project)) continue;
  for (const [, name, text] of section.matchAll(/^```\w+\n\/\/ (\S+\.\w+)\n(.*?)^```$/gms)) {
    const file = join(output, project, name);
    mkdirSync(dirname(file), { recursive: true });
    // The schema is the one that belongs to this code.
    writeFileSync(file, text.replace('http://localhost:4000/schema.graphql', 'schema.graphql'));
    copyFileSync(join(root, 'schema.graphql'), join(output, project, 'schema.graphql'));
  }
}
