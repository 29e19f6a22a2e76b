/** Prepares a migrated data folder once. Every test starts from a copy of it. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { openDatabase } from '../../../src/database/database.ts';

export default async function setup(project: TestProject) {
  const folder = await mkdtemp(join(tmpdir(), 'dovetail-test-'));
  const template = join(folder, 'template');
  const database = await openDatabase({ DATABASE_URL: undefined, DATA_DIR: template });
  await database.close();
  project.provide('engine', { kind: 'embedded', template });
  return () => rm(folder, { recursive: true, force: true });
}

declare module 'vitest' {
  export interface ProvidedContext {
    /** The source of new databases: a folder to copy, or a server with a database `template` to copy. */
    engine: { kind: 'embedded'; template: string } | { kind: 'postgres'; url: string; template: string };
  }
}
