/**
 * `npm run migration -- <name>`: drafts the migration from the schema of the last commit to that of the working
 * tree, for a developer to read and complete. It needs the development dependencies and a build.
 */

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PrismaPg } from '@prisma/adapter-pg';
import { bindMigrationAwareSqlAdapterFactory } from '@prisma/driver-adapter-utils';
import * as engineModule from '@prisma/schema-engine-wasm/schema_engine_bg';

/**
 * The SQL that leads from one version of `schema.prisma` to another; from nothing, if `from` is empty.
 * @param {import('pg').ClientConfig} connection to any database: the engine compares two texts, but insists on being connected.
 * @param {string} from
 * @param {string} to
 * @returns {Promise<string>}
 */
export async function draftMigration(connection, from, to) {
  await loadEngine();
  const engine = await engineModule.SchemaEngine.new(
    { datamodels: [['schema.prisma', to]] },
    () => {},
    bindMigrationAwareSqlAdapterFactory(new PrismaPg(connection)),
  );
  const { stdout } = await engine.diff({
    from: from === '' ? { tag: 'empty' } : datamodel(from),
    to: datamodel(to),
    script: true,
    exitCode: null,
    filters: { externalTables: [], externalEnums: [] },
  });
  return stdout ?? '';
}

const datamodel = (content) => ({
  tag: 'schemaDatamodel',
  files: [{ path: 'schema.prisma', content }],
});

/** Does what wasm-bindgen's own loader does, for a runtime that cannot import .wasm files. */
async function loadEngine() {
  const script = createRequire(import.meta.url).resolve('@prisma/schema-engine-wasm/schema_engine_bg');
  const { instance } = await WebAssembly.instantiate(readFileSync(script.replace(/\.js$/, '.wasm')), {
    './schema_engine_bg.js': { ...engineModule },
  });
  engineModule.__wbg_set_wasm(instance.exports);
  instance.exports.__wbindgen_start();
}

if (process.argv[1] === import.meta.filename) {
  const name = process.argv[2];
  if (!name || !/^[a-z0-9_]+$/.test(name)) {
    process.stderr.write('usage: npm run migration -- <name_in_snake_case>\n');
    process.exit(1);
  }
  const committed = execFileSync('git', ['show', 'HEAD:prisma/schema.prisma'], { encoding: 'utf8' });
  const current = readFileSync('prisma/schema.prisma', 'utf8');
  const { openEmbedded } = await import('../dist/database/embedded/embedded.js');
  const dataDir = mkdtempSync(join(tmpdir(), 'dovetail-draft-'));
  const { connection, close } = await openEmbedded(dataDir);
  const sql = await draftMigration(connection, committed, current).finally(async () => {
    await close();
    rmSync(dataDir, { recursive: true, force: true });
  });
  const stamp = new Date().toISOString().replace(/\D/g, '').slice(0, 14);
  const folder = `prisma/migrations/${stamp}_${name}`;
  mkdirSync(folder);
  writeFileSync(`${folder}/migration.sql`, sql);
  process.stdout.write(`${folder}/migration.sql\n`);
}
