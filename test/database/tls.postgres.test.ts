/** Connections by TLS: which certificates of a server are accepted, and the errors for others. */

import { execFileSync, spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { chown, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { findServer } from '../../src/database/connection.ts';
import { freePort } from '../support/freePort.ts';
import { createFolder, initialiseData, type RunningServer, runServer } from '../support/postgres.ts';
import { findPostgresPrograms } from '../support/postgresPrograms.ts';

const hasOpenssl = spawnSync('openssl', ['version']).status === 0;

let folder: string;
let port: number;
let certificate: string;

/** Creates a self-signed certificate for the name `localhost`, in the files that the server and its clients read. */
async function makeCertificate(data: string): Promise<void> {
  const [key, cert] = [join(data, 'server.key'), join(data, 'server.crt')];
  const request =
    'req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost';
  execFileSync('openssl', [...request.split(' '), '-keyout', key, '-out', cert], { stdio: 'ignore' });
  await writeFile(certificate, await readFile(cert));
  const { uid, gid } = findPostgresPrograms().owner;
  if (uid === undefined || gid === undefined) return;
  for (const file of [key, cert]) await chown(file, uid, gid);
}

const urlOf = (query: string, host = 'localhost') =>
  `postgresql://postgres:postgres@${host}:${port}/postgres?${query}`;

describe.skipIf(!hasOpenssl)('a server with a self-signed certificate', () => {
  let server: RunningServer | undefined;
  beforeAll(async () => {
    folder = await createFolder();
    await initialiseData(folder, { ssl: 'on' });
    certificate = join(folder, 'ca.pem');
    await makeCertificate(join(folder, 'data'));
    port = await freePort();
    server = await runServer(folder, port);
  });
  // pg warns of some modes, once in a process.
  beforeEach(() => void vi.spyOn(process, 'emitWarning'));
  afterEach(() => expect(process.emitWarning).not.toHaveBeenCalled());
  afterAll(async () => {
    await server?.stop('immediate');
    rmSync(folder, { recursive: true, force: true });
  });

  it.each(['sslmode=no-verify', 'sslmode=require&sslrootcert=', 'sslmode=verify-full&sslrootcert='])(
    'is reached with %s',
    async (query) => {
      const url = urlOf(query.replace(/sslrootcert=$/, `sslrootcert=${certificate}`));
      await expect(findServer({ url })).resolves.toMatchObject({ pooled: false, decodes: false });
    },
  );

  // Newer versions of Node.js add advice to the reason.
  it.each([
    ['require', 'localhost', false, 'self-signed certificate'],
    ['prefer', 'localhost', false, 'self-signed certificate'],
    ['verify-ca', '127.0.0.1', true, 'Hostname/IP does not match'],
  ])('is rejected with sslmode=%s at %s', async (mode, host, isSigned, says) => {
    const url = urlOf(`sslmode=${mode}${isSigned ? `&sslrootcert=${certificate}` : ''}`, host);
    await expect(findServer({ url })).rejects.toThrow(`but cannot be used: ${says}`);
  });
});
