/** The code of optional features is loaded only if they are on. */

import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished, vi } from 'vitest';
import { copyTemplate } from '../support/gateway.ts';
import { serve } from '../support/processes.ts';

// Gateways with coverage are slow on a busy machine.
vi.setConfig({ testTimeout: 90_000 });

/** The files that a gateway with these settings has loaded once it has responded. */
async function filesOf(settings: Record<string, string>): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'dovetail-loaded-'));
  const data = await copyTemplate();
  onTestFinished(async () => {
    for (const each of [folder, data]) await rm(each, { recursive: true, force: true });
  });
  // V8 reports the files that it has loaded as coverage.
  const { url, child, exit } = await serve({ ...settings, DATA_DIR: data, NODE_V8_COVERAGE: folder });
  for (const path of ['/graphql?query={viewer{id}}', '/api/v1/users/me', '/mcp'])
    await (await fetch(url + path, { method: path === '/mcp' ? 'POST' : 'GET' })).text();
  child.kill('SIGTERM');
  await exit;
  const [file = ''] = await readdir(folder);
  const { result }: { result: { url: string }[] } = JSON.parse(await readFile(join(folder, file), 'utf8'));
  return result.map(({ url: each }) => each).filter((each) => each.startsWith('file:'));
}

const namesOf = (files: readonly string[]) => files.map((each) => basename(each)).sort();

it('a gateway loads the code of federation and MCP only if they are on', async () => {
  const [off, on] = [await filesOf({}), await filesOf({ FEDERATION: 'on', MCP: 'read' })];
  expect(namesOf(off)).toContain('serve.js');
  const added = namesOf(on).filter((name) => !namesOf(off).includes(name));
  expect(added).toEqual(['mcp.js', 'openapi.js', 'subgraph.js']);
  // Their code is not in the files that every gateway loads either.
  for (const file of off)
    expect(await readFile(fileURLToPath(file), 'utf8'), file).not.toMatch(
      /io\.modelcontextprotocol|representations must have|specs\.apollo\.dev/,
    );
});
