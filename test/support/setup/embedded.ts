/** Prepares a migrated data folder once, for every test to start from a copy of it. */

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
    /** Where new databases come from: a folder to copy, or a server whose database `template` is one to copy. */
    engine: { kind: 'embedded'; template: string } | { kind: 'postgres'; url: string; template: string };
  }
}
