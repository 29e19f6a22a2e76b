/**
 * Keeps the embedded database that this version makes: `npx tsx test/releases/add.ts`, once for each release. The test beside it opens all
 * of them with the version at hand.
 */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliCompressSync, gunzipSync } from 'node:zlib';
import { digestOf } from '../../src/auth/tokens.ts';
import { openDatabase } from '../../src/database/database.ts';
import { engineFolder } from '../../src/database/embedded/folder.ts';
import { pack } from '../../src/database/embedded/newDatabase.ts';
import { release } from '../../src/version.ts';
import { loadDemo } from '../support/demo.ts';
import { keptToken } from './kept.ts';

const folder = mkdtempSync(join(tmpdir(), 'dovetail-release-'));
const database = await openDatabase({ DATABASE_URL: undefined, DATA_DIR: folder });
await loadDemo(database, folder);
await database.pool.query(
  `INSERT INTO "ApiToken" ("userId", name, digest, scope, slot)
   SELECT id, 'kept', decode($1, 'hex'), 'manage', 5 FROM "User" WHERE username = 'demo'`,
  [digestOf(keptToken)],
);
await database.close();
const packed = join(folder, 'packed.gz');
pack(join(folder, engineFolder), packed);
writeFileSync(
  new URL(`${release}.br`, import.meta.url),
  brotliCompressSync(gunzipSync(readFileSync(packed))),
);
rmSync(folder, { recursive: true });
