import { expect, it, onTestFinished } from 'vitest';
import { openTestGateway } from '../../support/gateway.ts';

it('without the setting, the 404 of the path says how to switch the tools on', async () => {
  const gateway = await openTestGateway();
  onTestFinished(() => gateway.close());
  const response = await fetch(`${gateway.url}/mcp`);
  const hint = 'The setting MCP, which is off, switches the tools for language models on.';
  expect([response.status, await response.text()]).toEqual([404, `Not found. ${hint}\n`]);
  const page = await fetch(`${gateway.url}/mcp`, { headers: { Accept: 'text/html' } });
  expect(await page.text()).toContain(hint);
});
