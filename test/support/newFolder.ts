import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Makes a folder, which is removed at the end of the run (`setup/temporary.ts`). */
export const newFolder = (): string => mkdtempSync(join(tmpdir(), 'test-'));
