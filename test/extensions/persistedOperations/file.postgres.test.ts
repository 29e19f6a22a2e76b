/** The file of persisted operations: its formats, what is wrong with it, and changes while a gateway runs. */

import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { SetupError } from '../../../src/errors.ts';
import {
  loadPersistedOperations,
  openPersistedFile,
} from '../../../src/extensions/persistedOperations/file.ts';
import { createDocuments } from '../../../src/graphql/documents.ts';
import { createPersistedOperations } from '../../../src/graphql/persisted.ts';
import { newFolder } from '../../support/newFolder.ts';
import { readConfig } from '../../support/settings.ts';
import { databaseWith, gatewayBeside } from '../../support/setUp.ts';

const { database } = await databaseWith();
const folder = newFolder();
const id = 'an id';
const viewer = 'query Viewer { viewer { username } }';
const first = 'query First($n: Int!) { dttDevices(first: $n) { nodes { bubbleId } } }';
const [one, two] = ['query One { viewer { id } }', 'query Two { viewer { username } }'];
const other = 'query Other { viewer { id username } }';
const manifestOf = (text: string) => JSON.stringify({ id: text });
const soon = (check: () => void) => vi.waitFor(check, 20_000);

describe('the file of persisted operations', () => {
  const load = async (name: string, text: string) => {
    const file = join(folder, name);
    await writeFile(file, text);
    const config = readConfig({ PERSISTED_OPERATIONS: 'only', PERSISTED_OPERATIONS_FILE: file });
    const operations = await loadPersistedOperations(file, createDocuments(config));
    return createPersistedOperations(config, { operations });
  };

  it.each([
    // Some editors begin a file with a byte order mark.
    ['as Relay and the client preset write it', 'plain.json', `\uFEFF${manifestOf(viewer)}`, 'id'],
    [
      'as Apollo writes it',
      'apollo.json',
      JSON.stringify({
        format: 'apollo-persisted-query-manifest',
        version: 1,
        operations: [{ id, name: 'Viewer', type: 'query', body: viewer }],
      }),
      id,
    ],
    [
      'in GraphQL, by the names of its operations',
      'all.graphql',
      `${first} query Viewer { viewer { ...F } } fragment F on User { username }`,
      'Viewer',
    ],
  ])('is accepted %s', async (_, name, text, documentId) => {
    expect((await load(name, text)).find({ documentId }, { id: 1 })).toMatch(/^query Viewer\b/);
  });

  it.each([
    ['is not JSON', 'a.json', '{', /cannot be used: .* in JSON at position 1/],
    ['is not a manifest', 'b.json', '[1]', /cannot be used: it is not a manifest of documents by id$/],
    ['is not GraphQL', 'c.graphql', '{', /cannot be used: Syntax Error/],
    [
      'has an operation without a name',
      'd.graphql',
      '{ viewer { id } }',
      /an operation has no name to be asked for by$/,
    ],
    [
      'has an invalid operation',
      'e.json',
      JSON.stringify({ x: '{ nobody }' }),
      /x cannot be run: Cannot query field "nobody"/,
    ],
  ])('prevents the start when it %s', async (_, name, text, message) => {
    const failing = load(name, text);
    await expect(failing).rejects.toThrow(SetupError);
    await expect(failing).rejects.toThrow(message);
  });

  it('prevents the start when it is missing, or is needed but not set', async () => {
    const start = (settings: Record<string, string>) => gatewayBeside(database, { settings });
    await expect(start({ PERSISTED_OPERATIONS: 'only' })).rejects.toThrow(
      new SetupError('PERSISTED_OPERATIONS=only needs PERSISTED_OPERATIONS_FILE, which names them.'),
    );
    await expect(start({ PERSISTED_OPERATIONS_FILE: '/nowhere/a.json' })).rejects.toThrow(
      new SetupError(
        'PERSISTED_OPERATIONS_FILE /nowhere/a.json cannot be used: ENOENT: no such file or directory',
      ),
    );
  });
});

describe('the file of persisted operations, while a gateway runs', () => {
  let path: string;
  const log = { info: vi.fn(), error: vi.fn() };
  /** Replaces the file at once: a part of it could be read otherwise. */
  async function write(text: string): Promise<void> {
    await writeFile(`${path}~`, text);
    await rename(`${path}~`, path);
  }
  beforeEach(async () => {
    path = join(folder, 'rewritten.json');
    await write(manifestOf(one));
    vi.resetAllMocks();
  });

  async function openFile() {
    const documents = createDocuments(readConfig({}));
    const file = await openPersistedFile({ path, documents, logger: log, interval: 5 });
    onTestFinished(file.close);
    return file;
  }

  it('is read again when it was written in place, and when it was replaced by a renamed file', async () => {
    const file = await openFile();
    expect(file.operations.get('id')).toBe(one);
    await write(manifestOf(other));
    await soon(() => expect(file.operations.get('id')).toBe(other));
    await writeFile(path, manifestOf(two));
    await soon(() => expect(file.operations.get('id')).toBe(two));
    expect(file.generation).toBeGreaterThan(1);
    expect(log.info).toHaveBeenLastCalledWith({ operations: 1 }, 'persisted operations were read again');
  });

  it('stays in use as it was read before while it is invalid, which is logged once', async () => {
    const file = await openFile();
    for (const wrong of ['{', '[]', manifestOf('{ nobody }')]) {
      await write(wrong);
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
    await write(manifestOf(two));
    await soon(() => expect(file.operations.get('id')).toBe(two));
    // The same mistake again.
    await write(manifestOf('{ nobody }'));
    await soon(() => expect(log.error).toHaveBeenCalledOnce());
  });
});
