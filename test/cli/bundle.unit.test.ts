/** The bundle that the program is started from: a few files instead of more than a thousand. */

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { newFolder } from '../support/newFolder.ts';
import { runCli } from '../support/processes.ts';

it('a gateway loads few files at its start, and no package that is loaded on demand', async () => {
  const folder = newFolder();
  // An invalid setting, which is read once everything is loaded, ends it. V8 reports the loaded files as coverage.
  const exit = await runCli(['serve'], { PORT: 'none', NODE_V8_COVERAGE: folder });
  expect(exit).toMatchObject({ code: 1, stderr: expect.stringContaining('PORT') });
  const [file = ''] = await readdir(folder);
  const { result }: { result: { url: string }[] } = JSON.parse(await readFile(join(folder, file), 'utf8'));
  const loaded = result.map(({ url }) => url).filter((url) => url.startsWith('file:'));
  expect(loaded).toContainEqual(expect.stringContaining('/dist/gateway/serve.js'));
  expect(loaded.length).toBeLessThan(60);
  const packages = loaded.flatMap((url) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1] ?? []);
  expect([...new Set(packages)]).toEqual(['@electric-sql/pglite']);
});
