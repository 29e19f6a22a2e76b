/**
 * `npm run migration -- <name>`: drafts the migration from the schema of the last commit to that of the working
 * tree, for a developer to read and complete. It needs no network.
 */

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PrismaPg } from '@prisma/adapter-pg';
import { bindMigrationAwareSqlAdapterFactory } from '@prisma/driver-adapter-utils';
import * as engineModule from '@prisma/schema-engine-wasm/schema_engine_bg';
import type pg from 'pg';
import { openEmbedded } from '../src/database/embedded/embedded.ts';

/** Opens Prisma's schema engine as WebAssembly, which does what `prisma migrate` does by a binary that has to be downloaded. */
export async function openSchemaEngine(connection: pg.ClientConfig, schema: string) {
  loading ??= loadEngine();
  await loading;
  return engineModule.SchemaEngine.new(
    { datamodels: [['schema.prisma', schema]] },
    () => {},
    // The engine closes no session, and the first that migrates would keep others waiting.
    bindMigrationAwareSqlAdapterFactory(new ScriptAdapter({ ...connection, idleTimeoutMillis: 1 })),
  );
}

/** Sends a script as a whole, as Prisma's binary does. Prisma's adapter splits it at every semicolon, also inside a function. */
class ScriptAdapter extends PrismaPg {
  override async connect() {
    const adapter = await super.connect();
    adapter.executeScript = async (script) => {
      await adapter.underlyingDriver().query(script);
    };
    return adapter;
  }
}

/**
 * The SQL that leads from one version of `schema.prisma` to another; from nothing, if `from` is empty.
 * @param connection to any database: the engine compares two texts, but insists on being connected.
 */
export async function draftMigration(connection: pg.ClientConfig, from: string, to: string): Promise<string> {
  const engine = await openSchemaEngine(connection, to);
  const { stdout } = await engine.diff({
    from: from === '' ? { tag: 'empty' } : datamodel(from),
    to: datamodel(to),
    script: true,
    exitCode: null,
    filters: { externalTables: [], externalEnums: [] },
  });
  return stdout ?? '';
}

const datamodel = (content: string) => ({
  tag: 'schemaDatamodel' as const,
  files: [{ path: 'schema.prisma', content }],
});

let loading: Promise<void> | undefined;

/** Does what wasm-bindgen's own loader does, for a runtime that cannot import .wasm files. To be called once. */
async function loadEngine(): Promise<void> {
  const script = createRequire(import.meta.url).resolve('@prisma/schema-engine-wasm/schema_engine_bg');
  const { instance } = await WebAssembly.instantiate(readFileSync(script.replace(/\.js$/, '.wasm')), {
    './schema_engine_bg.js': { ...engineModule },
  });
  engineModule.__wbg_set_wasm(instance.exports);
  const { __wbindgen_start: start } = instance.exports;
  if (typeof start === 'function') start();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const name = process.argv[2];
  if (!name || !/^[a-z0-9_]+$/.test(name)) {
    process.stderr.write('usage: npm run migration -- <name_in_snake_case>\n');
    process.exit(1);
  }
  const committed = execFileSync('git', ['show', 'HEAD:prisma/schema.prisma'], { encoding: 'utf8' });
  const current = readFileSync('prisma/schema.prisma', 'utf8');
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
