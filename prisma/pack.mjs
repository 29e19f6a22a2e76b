/**
 * The last step of `npm run build`: makes an embedded database, applies the migrations to it, and packs it for new data
 * folders to begin with. Nothing is done where that is there already.
 */

import { existsSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { newDatabaseFile } from '../dist/database/newDatabase.js';

const file = await newDatabaseFile();
if (!existsSync(file)) {
  const { openDatabase } = await import('../dist/database/database.js');
  const { engineFolder } = await import('../dist/database/embedded/owner.js');
  const { pack } = await import('../dist/database/embedded/packed.js');
  const folder = mkdtempSync(join(tmpdir(), 'dovetail-pack-'));
  try {
    const database = await openDatabase({ DATABASE_URL: undefined, DATA_DIR: folder });
    // A new file of the write-ahead log, and what stands in the last done with: it is long, and of no use any more.
    await database.pool.query('SELECT pg_switch_wal()');
    await database.pool.query('CHECKPOINT');
    const { rows } = await database.pool.query('SELECT pg_walfile_name(pg_current_wal_lsn()) AS current');
    await database.close();
    const log = join(folder, engineFolder, 'pg_wal');
    for (const name of readdirSync(log))
      if (/^[\dA-F]{24}$/.test(name) && name !== rows[0].current) rmSync(join(log, name));
    // Another build may be packing as well, and a gateway may be starting.
    const draft = `${file}.${process.pid}`;
    pack(join(folder, engineFolder), draft);
    renameSync(draft, file);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  for (const name of readdirSync(dirname(file)))
    if (/^new-.*\.gz$/.test(name) && name !== basename(file))
      rmSync(join(dirname(file), name), { force: true });
}
