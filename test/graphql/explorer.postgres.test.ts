/** The GraphiQL page as it is sent. Whether it works in a browser is tested in test/browser. */

import { hash } from 'node:crypto';
import { parse, validate } from 'graphql';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { examples } from '../../src/graphql/explorer.ts';
import { schema } from '../../src/schema/schema.ts';
import {
  type DemoGateway,
  openBeside,
  openDemoGateway,
  openTestGateway,
  type TestGateway,
} from '../support/gateway.ts';

let gateway: DemoGateway;
let deployed: TestGateway;
beforeAll(async () => {
  gateway = await openDemoGateway();
  deployed = await openTestGateway(await openBeside(gateway.database));
});
afterAll(async () => {
  await deployed?.close();
  await gateway?.close();
});

describe('the examples of GraphiQL', () => {
  it('are valid', () => {
    expect(examples.flatMap((text) => validate(schema, parse(text)))).toEqual([]);
  });
});

describe('the GraphiQL page', () => {
  const open = (at: TestGateway, headers: Record<string, string> = {}) =>
    fetch(`${at.url}/graphql`, {
      headers: { Accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', ...headers },
    });

  it('has a policy that allows only its own script and its own gateway, and no framing', async () => {
    const response = await open(deployed, { 'Accept-Encoding': 'gzip' });
    const { headers } = response;
    const [, script = ''] = /<script>([\s\S]*)<\/script>/.exec(await response.text()) ?? [];
    const policy = headers.get('Content-Security-Policy')?.split('; ') ?? [];
    // Checked here, since a test in a browser would notice a directive only by what it blocks.
    for (const part of [
      "default-src 'none'",
      `script-src 'sha256-${hash('sha256', script, 'base64')}'`,
      "style-src 'unsafe-inline'",
      'img-src data:',
      'font-src data:',
      'worker-src blob:',
      "connect-src 'self'",
      "frame-ancestors 'none'",
    ])
      expect(policy).toContain(part);
    expect(headers.get('Vary')).toBe('Accept, Accept-Encoding, Authorization, Host');
    expect(headers.get('X-Content-Type-Options')).toBe('nosniff');
    expect(headers.get('Referrer-Policy')).toBe('no-referrer');
  });

  it('sends the token of the demo account, or shows where to put a token if there is no demo account', async () => {
    // The options come last, after megabytes of script that a failed assertion should not print.
    const optionsAt = async (at: TestGateway) =>
      /renderYogaGraphiQL\([\s\S]{0,9999}$/.exec(await (await open(at)).text())?.[0];
    const demo = await optionsAt(gateway);
    expect(demo).toContain(JSON.stringify({ Authorization: `Bearer ${gateway.token}` }));
    const own = await optionsAt(deployed);
    expect(own).toContain('Bearer YOUR_API_TOKEN');
    expect(own).not.toContain(gateway.token);
    expect(own).not.toContain('"additionalHeaders"');
  });
});
