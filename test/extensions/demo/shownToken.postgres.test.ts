/** For which hosts the pages show the token of the demo account: not for a name that others may point to this gateway. */

import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { createHostCheck, showToken } from '../../../src/extensions/demo/shownToken.ts';
import type { TestGateway } from '../../support/gateway.ts';
import { openRaw, parseResponses } from '../../support/rawHttp.ts';
import { demoGateway, gatewayBeside } from '../../support/setUp.ts';

const open = await demoGateway();
const { token } = open;
const here = { HOST: '127.0.0.1', DEMO_ACCOUNT: 'local' } as const;
const gateway = await gatewayBeside(open.database, {
  extensions: [
    {
      settings: {},
      open: async (_, { database: { sql }, feed }) => ({ shownToken: showToken(token, here, { sql, feed }) }),
    },
  ],
});

function requestFor(host: string | undefined, url = '/', headers: Record<string, string> = {}) {
  const request = new IncomingMessage(new Socket());
  request.url = url;
  request.headers = { ...(host !== undefined && { host }), ...headers };
  return request;
}

const isShown = (HOST: string, host: string | undefined, url?: string, headers?: Record<string, string>) =>
  createHostCheck({ HOST, DEMO_ACCOUNT: 'local' })(requestFor(host, url, headers));

const loopback = '127.0.0.1';

describe('the demo token', () => {
  it.each([
    [loopback, 'localhost:4000'],
    [loopback, 'localhost.:4000'],
    [loopback, '127.0.0.1:4000'],
    [loopback, '[::1]:4000'],
    [loopback, '[::ffff:127.0.0.1]'],
    ['192.168.1.5', '192.168.1.5:4000'],
    ['2001:db8::5', '[2001:db8:0::5]:4000'],
    ['Gateway.Example', 'gateway.example:4000'],
  ])('is shown by a gateway with HOST %s for the host %s', (HOST, host) => {
    expect(isShown(HOST, host)).toBe(true);
    expect(isShown(HOST, host, `http://${host}/docs`)).toBe(true);
  });

  it.each<readonly [string, string | undefined]>([
    [loopback, undefined],
    [loopback, 'rebound.example:4000'],
    [loopback, 'rebound.localhost'],
    [loopback, 'localhost@rebound.example'],
    [loopback, '127.0.0.1.rebound.example'],
    [loopback, '192.168.1.5'],
    ['192.168.1.5', '192.168.1.50'],
    ['gateway.example', 'www.gateway.example'],
    ...['0.0.0.0', '0', '0x0', '0.0', '::', '0:0::0', '::ffff:0.0.0.0'].flatMap((everywhere) =>
      ['localhost', '127.0.0.1', '[::1]:4000', '192.168.1.5', everywhere, `[${everywhere}]`].map(
        (host) => [everywhere, host] as const,
      ),
    ),
  ])('is not shown by a gateway with HOST %s for the host %s', (HOST, host) => {
    expect(isShown(HOST, host)).toBe(false);
  });

  it('is not shown for another host in the request target, nor for a host in the headers of proxies', () => {
    expect(isShown(loopback, 'localhost', 'http://rebound.example/')).toBe(false);
    // A URL in the query says nothing of the host.
    expect(isShown(loopback, 'localhost', '/?from=http://rebound.example/')).toBe(true);
    expect(isShown(loopback, 'localhost', 'http://localhost@rebound.example/')).toBe(false);
    expect(isShown(loopback, 'rebound.example', 'http://localhost/')).toBe(false);
    const forwarded = { 'x-forwarded-host': 'localhost', forwarded: 'host=localhost' };
    expect(isShown(loopback, 'rebound.example', '/', forwarded)).toBe(false);
  });

  it('is shown for every host with DEMO_ACCOUNT=public', () => {
    for (const HOST of [loopback, '0.0.0.0', '::'])
      expect(createHostCheck({ HOST, DEMO_ACCOUNT: 'public' })(requestFor('gateway.example'))).toBe(true);
  });
});

describe('the page', () => {
  const pageAt = async ({ url }: TestGateway, path: string, host: string) => {
    const { socket, ended } = await openRaw(url);
    socket.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nAccept: text/html\r\nConnection: close\r\n\r\n`);
    const [response] = parseResponses(await ended());
    return response ?? expect.fail('there was no response');
  };

  it.each(['/', '/docs', '/schema', '/graphql'])(
    '%s has the demo token only for hosts of the gateway, and varies by Host',
    async (path) => {
      for (const [at, host, shown] of [
        [gateway, '127.0.0.1', true],
        [gateway, 'rebound.example', false],
        [gateway, 'localhost:4000', true],
        [open, 'gateway.example', true],
      ] as const) {
        const { status, headers, body } = await pageAt(at, path, host);
        expect(status).toBe(200);
        // Compared as a boolean, since a failed assertion should not print megabytes.
        expect({ host, shown: body.includes(token) }).toEqual({ host, shown });
        expect(headers.vary?.split(', ')).toContain('Host');
        expect(headers['cache-control']).toBe('private, no-cache');
      }
    },
  );

  it('has the demo token until it is revoked, whatever happens to other tokens', async () => {
    const revoked = await demoGateway();
    const { apiToken } = revoked.database.client;
    const hasToken = async () => (await pageAt(revoked, '/', 'localhost')).body.includes(revoked.token);
    const changed = (table: string) =>
      new Promise<void>((resolve) => {
        revoked.feed.subscribe((change) => change.table === table && resolve());
      });
    const other = changed('ApiToken');
    await apiToken.create({
      data: { user: { connect: { username: 'demo' } }, name: 'other', slot: 5, digest: Buffer.alloc(32) },
    });
    await other;
    expect(await hasToken()).toBe(true);
    await apiToken.updateMany({ where: { name: 'demo-token' }, data: { revokedAt: new Date() } });
    await expect.poll(hasToken).toBe(false);
  });
});
