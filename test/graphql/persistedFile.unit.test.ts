/** The file of persisted operations, while a gateway runs. */

import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { readConfig } from '../../src/config/config.ts';
import { createDocuments } from '../../src/graphql/documents.ts';
import { openPersistedFile } from '../../src/graphql/persisted.ts';

const [one, two] = ['query One { viewer { id } }', 'query Two { viewer { username } }'];
const other = 'query Other { viewer { id username } }';
const manifest = (text: string) => JSON.stringify({ id: text });

/** Waits long enough for a busy machine. */
const soon = (check: () => void) => vi.waitFor(check, 20_000);

let folder: string;
let path: string;
let closing: AbortController;
const log = { info: vi.fn(), error: vi.fn() };
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dovetail-reread-'));
  path = join(folder, 'operations.json');
  await writeFile(path, manifest(one));
  closing = new AbortController();
  vi.resetAllMocks();
});
afterEach(async () => {
  closing.abort();
  await rm(folder, { recursive: true, force: true });
});

function open({ interval = 5, file = path } = {}) {
  const config = readConfig({ PERSISTED_OPERATIONS_FILE: file });
  const documents = createDocuments(config);
  return openPersistedFile({ config, documents, logger: log, closing: closing.signal, interval });
}

it('a file is read again when it was written in place, and when it was replaced by a renamed file', async () => {
  const file = open();
  expect(file.operations.get('id')).toBe(one);
  // The first check reads the file in any case.
  await writeFile(path, manifest(other));
  await soon(() => expect(file.operations.get('id')).toBe(other));
  await writeFile(path, manifest(two));
  await soon(() => expect(file.operations.get('id')).toBe(two));
  await writeFile(`${path}~`, manifest(one));
  await rename(`${path}~`, path);
  await soon(() => expect(file.operations.get('id')).toBe(one));
  expect(file.generation).toBe(3);
  const line = [{ operations: 1 }, 'persisted operations were read again'];
  expect(log.info.mock.calls).toEqual([line, line, line]);
});

it('the operations that were read before stay in use while the file is invalid, which is logged once', async () => {
  const file = open();
  for (const wrong of ['{', '[]', manifest('{ nobody }')]) {
    await writeFile(path, wrong);
    await soon(() => expect(log.error).toHaveBeenCalled());
    expect(log.error).toHaveBeenCalledExactlyOnceWith(
      expect.stringMatching(
        /^PERSISTED_OPERATIONS_FILE .* cannot be used: .*; the operations that were read before stay$/,
      ),
    );
    expect(file.operations.get('id')).toBe(one);
    expect(file.generation).toBe(0);
    log.error.mockClear();
  }
  await writeFile(path, manifest(two));
  await soon(() => expect(file.operations.get('id')).toBe(two));
  // The same mistake again.
  await writeFile(path, manifest('{ nobody }'));
  await soon(() => expect(log.error).toHaveBeenCalledOnce());
});
