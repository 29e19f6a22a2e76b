/** The build of a frontend fails when the schema has a breaking change. */

import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { generate } from '@graphql-codegen/cli';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import config from '../../codegen.ts';

/** The data access of a frontend. */
const frontend = `
  import { graphql } from './generated/client/index.ts';
  import type { DevicesQuery } from './generated/client/graphql.ts';
  export const query = graphql(\`query Devices { dttDevices { totalCount nodes { serialNumber } } }\`);
  export const totalOf = (data: DevicesQuery): number => data.dttDevices!.totalCount;
`;

let folder: string;
beforeAll(async () => {
  // Within this folder, so that the build finds the packages of the clients.
  await mkdir('test/generatedClients/generated', { recursive: true });
  folder = await mkdtemp(resolve('test/generatedClients/generated/breaking-'));
  await writeFile(join(folder, 'devices.ts'), frontend);
  await writeFile(
    join(folder, 'tsconfig.json'),
    JSON.stringify({ extends: resolve('tsconfig.json'), include: ['*.ts'], exclude: [] }),
  );
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Builds the frontend against the schema after a change. @returns the errors of the build. */
async function build(change: (schema: string) => string): Promise<string> {
  const schema = change(await readFile('schema.graphql', 'utf8'));
  const documents = join(folder, 'devices.ts');
  const output = config.generates['test/generatedClients/generated/client/'];
  const generates = { [join(folder, 'generated/client/')]: { ...output, documents } };
  // It also logs its errors.
  const muted = vi.spyOn(console, 'error').mockImplementation(() => {});
  try {
    await generate({ ...config, schema, generates, cwd: folder });
  } catch (error) {
    return String(error);
  } finally {
    muted.mockRestore();
  }
  return new Promise((settle) => {
    execFile('node_modules/.bin/tsc', ['--project', folder], (_, output) => settle(output));
  });
}

it('builds against the current schema', async () => {
  expect(await build((schema) => schema)).toBe('');
});

it.each([
  [
    'is renamed',
    (schema: string) => schema.replace('  serialNumber: String\n', '  serial: String\n'),
    'Cannot query field "serialNumber" on type "DttDevice"',
  ],
  [
    'may be null',
    (schema: string) => schema.replaceAll('totalCount: Int!', 'totalCount: Int'),
    "Type 'null' is not assignable to type 'number'",
  ],
])('does not build when a field %s', async (_, change, error) => {
  expect(await build(change)).toContain(error);
});
