/** A connection outside of any pool ends, whatever the server does. */

import { expect, it, onTestFinished } from 'vitest';
import { createSession } from '../../src/database/session.ts';
import { openSilentServer } from '../support/silent.ts';

it('a session with a server that does not say goodbye is over after a second', async () => {
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
