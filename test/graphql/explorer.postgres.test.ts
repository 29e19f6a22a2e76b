/** The GraphiQL page as it is sent. Whether it works in a browser is tested in test/browser. */

import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { get, type IncomingMessage } from 'node:http';
import { parse, validate } from 'graphql';
import { describe, expect, it } from 'vitest';
import { schema } from '../../src/schema/schema.ts';
import { gatewayWith } from '../support/setUp.ts';

const { gateway } = await gatewayWith([]);

it('the examples of GraphiQL are valid', () => {
  const folder = 'explorer/examples';
  const examples = readdirSync(folder).map((name) => readFileSync(`${folder}/${name}`, 'utf8'));
  expect(examples.flatMap((text) => validate(schema, parse(text)))).toEqual([]);
});

describe('the GraphiQL page', () => {
  const open = () =>
    fetch(`${gateway.url}/graphql`, {
      headers: { Accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' },
    });

  it('has a policy that allows only files of the gateway and the script of the theme, and frames of its own origin', async () => {
    const { headers } = await open();
    expect(headers.get('Content-Security-Policy')).toMatch(
      /^default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; script-src 'self' 'sha256-\S+'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'$/,
    );
    expect(headers.get('Vary')).toBe('Accept, Accept-Encoding, Authorization, Host');
    expect(headers.get('X-Content-Type-Options')).toBe('nosniff');
    expect(headers.get('Referrer-Policy')).toBe('no-referrer');
  });

  it('has files whose content never changes, of at most 1.5 MB as sent', async () => {
    const page = await (await open()).text();
    expect(page.match(/aria-current="page">[^<]*/g)).toEqual(['aria-current="page">GraphiQL']);
    const files = readdirSync('dist/explorer/assets').map((name) => `/graphiql/assets/${name}`);
    for (const [, file] of page.matchAll(/(?:src|href)="\.(\/graphiql\/[^"]*)"/g))
      expect(files).toContain(file);
    let size = 0;
    for (const file of files) {
      // Read by `http`, since `fetch` decodes what is sent.
      const request = get(gateway.url + file, { headers: { 'Accept-Encoding': 'gzip' } });
      const [response]: IncomingMessage[] = await once(request, 'response');
      request.destroy();
      expect(response?.headers['cache-control']).toBe('public, max-age=31536000, immutable');
      size += Number(response?.headers['content-length']);
    }
    expect(size).toBeLessThan(1_500_000);
    expect((await fetch(`${gateway.url}/graphiql/assets/none.js`)).status).toBe(404);
  });
});
