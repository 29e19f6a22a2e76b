/** The program that docs/tools.md shows. */

import { execFile } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { blocksOf, readPage } from '../docs/markdown.ts';
import { createAccount } from '../support/accounts.ts';
import { openTestGateway } from '../support/gateway.ts';

it('the example program prints the tools and the results of two of them', async () => {
  const program = blocksOf(readPage('docs/tools.md')).find(({ text }) => text.startsWith('// ask.mjs'));
  const folder = resolve('test/mcp/generated');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  writeFileSync(`${folder}/ask.mjs`, program?.text ?? '');
  const gateway = await openTestGateway(undefined, { settings: { MCP: 'read' } });
  try {
    const { token } = await createAccount(gateway.database.client, 'alice');
    const { stdout } = await promisify(execFile)(process.execPath, [`${folder}/ask.mjs`], {
      env: { ...process.env, MCP_URL: `${gateway.url}/mcp`, TOKEN: token },
    });
    expect(stdout).toMatch(/^users viewer user dttDevices .* graphqlQuery\n/);
    expect(stdout).toMatch(/bubble_id: 'alice-/);
    expect(stdout).toMatch(/totalCount: \d/);
  } finally {
    await gateway.close();
  }
});
