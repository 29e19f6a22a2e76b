/** Closing a connection outside of any pool. */

import { expect, it, onTestFinished } from 'vitest';
import { createSession } from '../../src/database/session.ts';
import { openSilentServer } from '../support/silent.ts';

it('a session is closed by the client when the server does not close its connection', async () => {
  const silent = await openSilentServer();
  onTestFinished(silent.close);
  const { client, close } = createSession({ connectionString: silent.url });
  await client.connect();
  let closed = false;
  const closing = close().then(() => {
    closed = true;
  });
  await new Promise(setImmediate);
  expect(closed).toBe(false);
  await closing;
  expect(client.connection.stream.destroyed).toBe(true);
});
