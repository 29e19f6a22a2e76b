/** Starts a PostgreSQL server once, with a migrated database. Every test starts from a copy of it. */

import { tmpdir } from 'node:os';
import type { TestProject } from 'vitest/node';
import { openDatabase } from '../../../src/database/database.ts';
import { startPostgres } from '../postgres.ts';

const template = 'template_dovetail';

export default async function setup(project: TestProject) {
  const { url, createDatabase, stop } = await startPostgres();
  await createDatabase(template);
  const database = await openDatabase({ DATABASE_URL: `${url}/${template}`, DATA_DIR: tmpdir() });
  await database.close();
  project.provide('engine', { kind: 'postgres', url, template });
  return stop;
}
