/**
 * The last step of `npm run build`: creates an embedded database, migrates it, and packs it. New data folders begin as a
 * copy of it. A packed database that exists already is kept, and those of earlier builds are removed: the package would have them.
 */

import { existsSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { openDatabase } from './src/database/database.ts';
import { engineFolder } from './src/database/embedded/folder.ts';
import { newDatabaseFile, pack } from './src/database/embedded/newDatabase.ts';

const file = await newDatabaseFile();
if (!existsSync(file)) await packTo(file);
const folder = dirname(file);
for (const name of readdirSync(folder))
  if (/^new-.*\.gz$/.test(name) && name !== basename(file)) rmSync(join(folder, name));

async function packTo(file: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'dovetail-pack-'));
  try {
    await makeDatabase(folder);
    // Another build may be packing as well, and a gateway may be starting.
    const draft = `${file}.${process.pid}`;
    pack(join(folder, engineFolder), draft);
    renameSync(draft, file);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function makeDatabase(folder: string): Promise<void> {
  const database = await openDatabase({ DATABASE_URL: undefined, DATA_DIR: folder });
  // Begins a new file of the write-ahead log. The previous file is long, and no longer needed.
  await database.pool.query('SELECT pg_switch_wal()');
  await database.pool.query('CHECKPOINT');
  const { rows } = await database.pool.query<{ current: string }>(
    'SELECT pg_walfile_name(pg_current_wal_lsn()) AS current',
  );
  await database.close();
  const log = join(folder, engineFolder, 'pg_wal');
  for (const name of readdirSync(log))
    if (/^[\dA-F]{24}$/.test(name) && name !== rows[0]?.current) rmSync(join(log, name));
}
