/** A PostgreSQL that can be stopped, killed and started again. */

import { mkdir } from 'node:fs/promises';
import { freePort } from '../support/freePort.ts';
import {
  initialiseData,
  type RunningServer,
  runServer,
  type StopMode,
  serverUrl,
} from '../support/postgres.ts';
import { until } from '../support/until.ts';

/** Creates a server in the folder, and starts it. */
export async function createServer(folder: string, settings: Readonly<Record<string, string>>) {
  await mkdir(folder, { recursive: true });
  await initialiseData(folder, { fsync: 'on', ...settings });
  const port = await freePort();
  let running: RunningServer | undefined;
  // After a crash the remaining processes hold the data folder for a moment, so the start is tried again.
  const start = () =>
    until(`PostgreSQL starts in ${folder}`, async () => {
      if (!running?.isRunning()) running = await runServer(folder, port).catch(() => undefined);
      return running !== undefined;
    });
  await start();
  return { url: `${serverUrl(port)}/postgres`, start, stop: async (mode: StopMode) => running?.stop(mode) };
}
